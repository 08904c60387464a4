"""Write docs/benchmarks.md and docs/images/speed.png from results/*.json; nothing is measured here.

python benchmarks/kit/page.py
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent.parent))

from benchmarks.kit import table_page

ROOT = Path(__file__).resolve().parent.parent.parent
RESULTS = ROOT / "benchmarks" / "results"
PAGE, PICTURE = ROOT / "docs" / "benchmarks.md", ROOT / "docs" / "images" / "speed.png"
# Okabe and Ito's colours, which the colour-blind can tell apart; markers and hatches differ as well.
BLUE, ORANGE, GREY = "#0072B2", "#E69F00", "#999999"
HEAD = """# Speed and memory

How much time and memory the optimiser takes beside the black box. `make bench` measures it on your machine and writes
this page from the numbers in `benchmarks/results`; `make bench QUICK=1` takes minutes and writes nothing. Each table
gives the load average of the machine: on a busy machine all numbers are higher.

![Four pictures: overhead beside networks, cost per query and coordinate, memory, cost against peers](images/speed.png)
"""
LOOPS = """`pip install` compiles the inner loops (`numerics/_kernels.c`) if it finds a C compiler and Python's
headers; otherwise numpy does the same work. The loops generate and sum random signs without storing them, draw and
correct the groups of the recommended method, and take a mirror step in one pass. Their exp and log use only
operations that IEEE 754 rounds in one way, so numpy gives the same numbers bit for bit. The tests compare the two,
and a run may start with the compiled loops and continue without them. `ZOMIRROR_KERNELS=0` in the environment turns
them off, at installation and at run time; `zomirror.numerics.kernels.compiled` is then None. The table gives the time
of one iteration of `zo_ada_expmd` with a function that takes no time (`overhead.py`):
"""
NARROW = """## What is rounded where

If x0 is float32, the run is in float32: the queried points, the directions, the gradient and the iterates. Numbers
that would suffer from many roundings stay in float64: the values of the function and their differences, the norms and
the penalty (sums over all coordinates), the step size and F. The gradient is a sum of m signed differences in the
type of x. Its error is below $m \\varepsilon \\sum_j |w_j|$, far below the noise of an estimate from m directions.
The tests check each of these bounds.

Points are made and queried in blocks of at most `max_block_bytes` (64 MB by default, at least one row), whatever the
number of workers. Inside a block numpy works on parts of 2 MB, which fit into the cache. The compiled loops add the
signs to x while they write the points, bypassing the cache for more than 32 MB. Sums are always taken row by row, so
neither these parts nor threads change a bit of a run.
"""


def main() -> None:
    found = {path.stem: json.loads(path.read_text()) for path in sorted(RESULTS.glob("*.json"))}
    sections = [HEAD, *overhead(found), *memory(found), *peers(found), *throughput(found)]
    sections += [*explanations(found), NARROW]
    for name, section in (("tables", table_page.tables), ("margins", table_page.margins)):
        sections += section(found[name], table) if name in found else ()
    sections += others(found)
    PAGE.write_text("\n".join(section.strip("\n") + "\n" for section in sections))
    draw(found)
    print(f"written: {PAGE.relative_to(ROOT)}, {PICTURE.relative_to(ROOT)}")


def where(document: dict[str, Any]) -> str:
    """One sentence on the machine."""
    m = document["machine"]
    return (
        f"Measured on {m['cores']} cores of {m['processor']} ({m['gigabytes']:g} GB; Python {m['python']}, numpy "
        f"{m['numpy']}, onnxruntime {m['onnxruntime']}), whose load average was {m['load_average']:g} at the start."
    )


def table(head: list[str], rows: list[list[str]]) -> str:
    """A table in Markdown."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def overhead(found: dict[str, Any]) -> Iterator[str]:
    """Overhead beside a network, and the compiled loops."""
    if (data := found.get("overhead")) is None:
        return
    rows = [
        [
            row["model"],
            f"{row['d']:,}",
            row["method"],
            row["dtype"],
            f"{row['rows']:,.0f}",
            f"{row['rows_per_second']:,.0f}",
            f"{row['optimiser_microseconds']:,.0f}",
            f"{row['query_microseconds']:,.1f}",
            f"{row['overhead']:.3f}",
            f"{row['processor_overhead']:.3f}",
            f"{row['iteration_overhead']:.3f}",
            "" if row["limit"] is None else f"{row['limit']:g}",
        ]
        for row in data["rows"]
    ]
    head = ["network", "d", "method", "type", "rows per batch", "rows/s", "us per batch", "us per query"]
    head += ["overhead", "of CPU time", "undisturbed", "aim"]
    yield "## Beside a network\n"
    yield (
        "Overhead is the time outside the function divided by the time inside it, on one thread (`overhead.py`); it is "
        "largest for fast networks. Rows per second are the network's. The aims are for networks of the paper's size: "
        "a LeNet of 431,080 weights, and ResNet20. The bundled LeNet has a tenth of the weights and misses them, "
        "because the time outside the function is about the same for both and is mostly Python. `undisturbed` uses the "
        "fastest tenth of the iterations and of the calls, where other programs interfered least.\n"
    )
    yield table(head, rows) + "\n"
    step = data["mirror_step"]
    yield (
        f"The mirror step on {step['d']:,} coordinates takes {step['float32']['ratio']:.2f} of the time of "
        f"`scipy.special.wrightomega` in float32 and {step['float64']['ratio']:.2f} in float64.\n"
    )
    yield where(data)
    if loops := data.get("compiled_loops"):
        yield "\n## Compiled loops\n"
        yield LOOPS
        rows = [
            [
                f"{row['d']:,}",
                f"{row['batch_size']}",
                row["dtype"],
                f"{row['numpy_microseconds']:,.0f}",
                f"{row['compiled_microseconds']:,.0f}",
                f"{row['ratio']:.2f}",
            ]
            for row in loops
        ]
        yield table(["d", "m", "type", "us in numpy", "us compiled", "ratio"], rows)


def memory(found: dict[str, Any]) -> Iterator[str]:
    """Time and memory by dimension."""
    if (data := found.get("memory")) is None:
        return
    rows = [
        [
            f"{row['d']:,}",
            row["dtype"],
            f"{row['nanoseconds_per_query_and_coordinate']:.2f}",
            f"{row['copying_nanoseconds']:.2f}",
            f"{row['over_baseline_megabytes']:,.0f}",
            f"{row['baseline_megabytes'] + row['over_baseline_megabytes']:,.0f}",
        ]
        for row in data["rows"]
    ]
    yield "## From a thousand coordinates to ten million\n"
    yield (
        "`zo_ada_expmd` with m = 200 in a process of its own (`memory.py`): processor time outside the function, and "
        "peak memory above that of a process that has imported everything and holds x0. `copying` is the time per "
        "coordinate to copy x into each row of a block: a lower bound for making points. At d = 1,000 most of the time "
        "is Python's; at 10,000 the points fit into the cache; above that memory bandwidth decides. At 1,000,000 and "
        "more the whole iteration (signs, points, gradient, step) takes at most 1.5 times as long as that copy.\n"
    )
    head = ["d", "type", "ns per query and coordinate", "copying", "MB over the baseline", "MB in all"]
    yield table(head, rows) + "\n"
    yield where(data)


def peers(found: dict[str, Any]) -> Iterator[str]:
    """Processor time per query, ours and others'."""
    if (data := found.get("peers")) is None:
        return
    rows = [[name, f"{cost:,.1f}"] for name, cost in data["microseconds_per_query"].items()]
    yield f"## Against other optimisers, at d = {data['d']:,}\n"
    yield (
        "Processor time of the optimiser itself per query, in microseconds (`peers.py`). SBPLX is compiled and moves "
        "few coordinates at a time; plain numpy is our method in a direct implementation. How much each query achieves "
        "is measured by `queries.py` and `scaling.py`.\n"
    )
    yield table(["optimiser", "us per query"], rows) + "\n"
    yield where(data)


def throughput(found: dict[str, Any]) -> Iterator[str]:
    """Throughput of two processes and of joint batches."""
    if (data := found.get("throughput")) is None:
        return
    yield "## Two processes\n"
    yield (
        f"{data['runs']} runs of the paper's experiments ({data['queries_each']:,} queries each, durable) take "
        f"{data['one_seconds']:.0f} s in one process and {data['two_seconds']:.0f} s in two: {data['ratio']:.2f} times "
        "the throughput, including the start of the processes (`throughput.py`).\n"
    )
    yield (
        "`zomirror reproduce --lockstep 8` runs eight at a time in each process, and `explain_many` eight inputs by "
        "default: the model evaluates their batches as one. That pays if each call has a fixed cost; a network in this "
        "process is faster with batches that fit into the cache.\n"
    )
    rows = [
        [
            row["algorithm"],
            f"{row['wait_milliseconds']:g}",
            f"{row['rows']:.0f}",
            f"{row['rows_together']:.0f}",
            f"{row['ratio']:.2f}",
        ]
        for row in data["lockstep"]
    ]
    head = ["method", "added ms per call", "rows per call", "rows per call, eight at a time", "throughput ratio"]
    yield table(head, rows) + "\n"
    yield where(data)


def explanations(found: dict[str, Any]) -> Iterator[str]:
    """What an explanation costs beside its model, in lockstep, and with fewer queries."""
    data = found.get("explain", {})
    if "cost" in data or "curve" in data:
        yield "## Explanations\n"
    if "cost" in data:
        yield (
            "Processor time of one explanation at the default budget, on one thread, inside the model and outside it "
            "(`explain.py --cost`; the same batches are given to the model again to time it):\n"
        )
        head = ["network", "kind", "queries", "calls", "ms inside", "ms outside", "outside / inside", "aim"]
        rows = [
            [
                line["model"],
                line["kind"],
                f"{line['rows']:,.0f}",
                f"{line['calls']:.0f}",
                f"{line['inside_milliseconds']:.0f}",
                f"{line['outside_milliseconds']:.0f}",
                f"{line['ratio']:.2f}",
                f"{line['limit']:g}",
            ]
            for line in data["cost"]["table"]
        ]
        yield table(head, rows) + "\n"
    if data.get("cost", {}).get("lockstep"):
        yield "One of many digits, by the number of searches at a time (`explain_many(lockstep=...)`, 8 by default):\n"
        head = ["kind", "searches at a time", "ms each"]
        rows = [
            [line["kind"], f"{line['lockstep']}", f"{line['milliseconds_each']:.0f}"]
            for line in data["cost"]["lockstep"]
        ]
        yield table(head, rows) + "\n"
    for name, part in data.get("curve", {}).items():
        if name not in ("digits", "photographs"):
            continue
        yield (
            f"F of {part['now'][0]['inputs']} {name} that were used for nothing else, kappa = 0 "
            f"(`explain.py --curve {name}`), and of the descents that were the search before:\n"
        )
        head = ["search", "kind", "queries", "median F", "mean F", "largest F", "valid"]
        rows = [
            [
                title,
                line["kind"],
                f"{line['budget']:,}",
                f"{line['median']:.3f}",
                f"{line['mean']:.3f}",
                f"{line['largest']:.2f}",
                f"{line['valid']:.0%}",
            ]
            for kind in ("PN", "PP")
            for title, lines in (("now", part["now"]), ("before", part.get("before", [])))
            for line in lines
            if line["kind"] == kind
        ]
        yield table(head, rows) + "\n"


def others(found: dict[str, Any]) -> Iterator[str]:
    """The benchmarks that have their own pictures."""
    yield "## The other benchmarks\n"
    about = {
        "queries": "queries of the recommended method to match ZO-AdaExpMD",
        "synthetic": "F after 20,000 queries, against ten other optimisers",
        "sparse": "sparse, noisy and dense functions: how far within how many queries",
        "gallery": "all published methods of `zm.methods` side by side",
        "prior": "queries that a guess of the gradient saves",
        "scaling": "how queries grow with the dimension",
        "explain": "explanations with default settings: validity, sparsity, queries",
        "tables": "rows of tables, against NICE, DiCE and growing spheres",
        "margins": "images: what survives rounding and noise",
        "attack": "attacks, against those of other libraries",
        "cox": "Cox regression from function values, against Coxnet",
        "durable": "the cost of durability",
        "long_run": "memory, inspection and resumption after 3,000,000 queries",
        "unsteady": "models that answer differently to the same input: how often their answers hold",
        "chaos": "runs killed at random moments",
    }
    yield table(
        ["script", "what it measures", "result"],
        [[f"`{n}.py`", text, f"`results/{n}.json`"] for n, text in about.items() if n in found],
    )


def draw(found: dict[str, Any]) -> None:
    """The four pictures."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(10, 7.4), layout="constrained")
    beside, cost, space, rivals = figure.subplots(2, 2).ravel()
    if "overhead" in found:
        rows = [
            row
            for row in found["overhead"]["rows"]
            if row["dtype"] == "float32" and row["method"] in ("zo_ada_expmd m = 200", "zo_ada_expmd m = 20")
        ]
        names = [f"{row['model'].partition(',')[0]}\nm = {row['batch_size']}" for row in rows]
        beside.barh(names, [row["overhead"] for row in rows], color=BLUE, alpha=0.4, label="all iterations")
        beside.barh(names, [row["iteration_overhead"] for row in rows], color=BLUE, height=0.4, label="undisturbed")
        aims = [(row["limit"], name) for row, name in zip(rows, names, strict=True) if row["limit"] is not None]
        beside.plot([aim for aim, _ in aims], [name for _, name in aims], "k|", markersize=18, label="aim")
        beside.invert_yaxis()
        beside.set(xscale="log", xlabel="overhead: time outside / time inside the function")
        beside.legend(loc="center right")
    beside.set_title("Beside a network (float32)")
    for dtype, colour, marker in (("float32", BLUE, "o"), ("float64", ORANGE, "s")):
        mine = [row for row in found.get("memory", {}).get("rows", []) if row["dtype"] == dtype]
        d = [row["d"] for row in mine]
        cost.plot(
            d, [row["nanoseconds_per_query_and_coordinate"] for row in mine], marker, ls="-", c=colour, label=dtype
        )
        cost.plot(d, [row["copying_nanoseconds"] for row in mine], ls=":", c=colour, label=f"copying x, {dtype}")
        space.plot(d, [row["over_baseline_megabytes"] for row in mine], marker, ls="-", c=colour, label=dtype)
    cost.set(xscale="log", xlabel="dimension d", ylabel="ns per query and coordinate")
    cost.set_ylim(0, 1.4 * cost.get_ylim()[1])
    cost.set_title("Time")
    cost.legend(loc="upper center")
    space.set(xscale="log", yscale="log", xlabel="dimension d", ylabel="MB over the baseline")
    space.plot([1e6, 1e7], [300, 2000], "k_", markersize=14, label="aim")
    space.set_title("Memory")
    space.legend()
    if "peers" in found:
        costs = found["peers"]["microseconds_per_query"]
        colours = [BLUE if name.startswith("zo_") else GREY for name in costs]
        rivals.barh(list(costs), list(costs.values()), color=colours)
        rivals.invert_yaxis()
        rivals.set(xscale="log", xlabel="us of the optimiser per query, d = 10,000")
    rivals.set_title("Beside peers")
    PICTURE.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(PICTURE, dpi=110)


if __name__ == "__main__":
    main()
