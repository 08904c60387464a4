"""The page of the benchmarks, from results/*.json: docs/benchmarks.md and docs/images/speed.png. It measures nothing.

python benchmarks/kit/page.py
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent.parent
RESULTS = ROOT / "benchmarks" / "results"
PAGE, PICTURE = ROOT / "docs" / "benchmarks.md", ROOT / "docs" / "images" / "speed.png"
# Okabe and Ito's colours, told apart by marker and hatch as well.
BLUE, ORANGE, GREY = "#0072B2", "#E69F00", "#999999"
HEAD = """# Speed and memory

The optimiser should be invisible beside the black box. `make bench` measures whether it is, on your machine, and makes
this page of the numbers in `benchmarks/results`; `make bench QUICK=1` takes minutes and writes nothing. The load
average beside each table says how busy the machine was: on a busy one all of this is dearer than it need be.

![Four pictures: overhead beside networks, cost per query and coordinate, memory, cost against peers](images/speed.png)
"""
LOOPS = """`pip install` compiles the inner loops (`_kernels.c`) where it finds a C compiler and the headers of Python,
and does without where it does not. They make and add up random signs without an array of signs, draw and mend the
groups of the recommended method, and take a mirror step in one pass, with an exp and a log made of operations that
IEEE 754 rounds in one way. So numpy gives the same numbers bit for bit, which the tests compare, and a run may begin
with them and go on without. `ZOMIRROR_KERNELS=0` in the environment does without them, when it installs and when it
runs; `zomirror.kernels.compiled` is None then. An iteration of `zo_ada_expmd` beside a function that takes no time, in
one run (`overhead.py`):
"""
NARROW = """## What is rounded where

A float32 starting point keeps the run in float32: the points that are asked, the directions, the gradient and the
iterates. Numbers that many roundings would spoil are kept in float64 all the same: the values of the function and their
differences, the norms and the penalty (sums over all coordinates), the step size and F. The gradient is a sum of m
signed differences in the type of x: its error is below $m \\varepsilon \\sum_j |w_j|$, far below the noise of an
estimate from m directions. The tests hold each of these to its bound.

Points are made and asked in blocks of at most `max_block_bytes` (64 MB unless the estimator is told otherwise, and at
least one row), whatever the number of workers. Inside a block numpy works on parts of 2 MB, which stay in the cache;
the compiled loops add the signs to x as they write the points, past the cache if there are more than 32 MB of them. The
sums are taken row after row all the same, so that neither these parts nor threads change a bit of a run.
"""


def main() -> None:
    found = {path.stem: json.loads(path.read_text()) for path in sorted(RESULTS.glob("*.json"))}
    sections = [HEAD, *overhead(found), *memory(found), *peers(found), *throughput(found), NARROW, *others(found)]
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
    """In Markdown."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def overhead(found: dict[str, Any]) -> Iterator[str]:
    """Beside a network."""
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
    head = ["network", "d", "method", "type", "rows a batch", "rows/s", "us a batch", "us a query"]
    head += ["overhead", "of CPU time", "undisturbed", "aim"]
    yield "## Beside a network\n"
    yield (
        "The time that is not spent in the function, divided by the time that is, on one thread (`overhead.py`). A "
        "fast network leaves the optimiser least to hide behind; rows per second are the network's. The aims are for "
        "networks of the paper's size: a LeNet of 431,080 weights, and ResNet20. The bundled LeNet has a tenth of the "
        "weights, and beside it the aims of the larger one do not hold: what a batch takes outside the function is "
        "about the same, and is mostly Python. `undisturbed` looks at the fastest tenth of the iterations and of the "
        "calls, where other programs interfered least.\n"
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
    """By dimension."""
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
        "the peak of the memory over that of a process that has imported everything and holds x0. `copying` is what "
        "copying x into each row of a block takes, per coordinate: the least that points could cost. At d = 1,000 most "
        "of an iteration is Python's; at 10,000 the points are in the cache; from there on memory sets the price, and "
        "at 1,000,000 and more all that the method does (signs, points, gradient, step) takes one and a half times as "
        "long as that copy, or less.\n"
    )
    head = ["d", "type", "ns per query and coordinate", "copying", "MB over the baseline", "MB in all"]
    yield table(head, rows) + "\n"
    yield where(data)


def peers(found: dict[str, Any]) -> Iterator[str]:
    """What a query costs."""
    if (data := found.get("peers")) is None:
        return
    rows = [[name, f"{cost:,.1f}"] for name, cost in data["microseconds_per_query"].items()]
    yield f"## Beside peers, at d = {data['d']:,}\n"
    yield (
        "Microseconds of the processor that an optimiser spends on itself per query (`peers.py`). SBPLX is compiled "
        "and moves few coordinates at a time; plain numpy is the same method without care. What a query is worth is "
        "another question, answered by `queries.py` and `scaling.py`.\n"
    )
    yield table(["optimiser", "us per query"], rows) + "\n"
    yield where(data)


def throughput(found: dict[str, Any]) -> Iterator[str]:
    """Two processes."""
    if (data := found.get("throughput")) is None:
        return
    yield "## Two processes\n"
    yield (
        f"{data['runs']} runs of the paper's experiments ({data['queries_each']:,} queries each, durable) take "
        f"{data['one_seconds']:.0f} s in one process and {data['two_seconds']:.0f} s in two: {data['ratio']:.2f} times "
        "the throughput, the start of the processes included (`throughput.py`).\n"
    )
    yield (
        "`zomirror reproduce --lockstep 8` does eight runs side by side in each process, and `explain_many` eight "
        "inputs unless told otherwise: the model sees their batches as one. That pays where a call has a price of its "
        "own; a network in this process is faster with batches that stay in the cache.\n"
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
    head = ["runs of", "ms that a call waits more", "rows a call", "with eight side by side", "times the throughput"]
    yield table(head, rows) + "\n"
    yield where(data)


def others(found: dict[str, Any]) -> Iterator[str]:
    """The benchmarks that have their own pictures."""
    yield "## The other benchmarks\n"
    about = {
        "queries": "queries that the recommended method needs to match ZO-AdaExpMD",
        "synthetic": "where 20,000 queries end, beside ten other optimisers",
        "scaling": "how queries grow with the dimension",
        "explain": "explanations with default settings: valid, sparse, at how many queries",
        "attack": "attacks beside those of other libraries",
        "cox": "Cox's model from values alone, beside coxnet",
        "durable": "what a durable run costs",
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
