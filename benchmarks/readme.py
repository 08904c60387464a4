"""Write the figures of README.md and four pages of the documentation from benchmarks/results.

Run it after a benchmark: python benchmarks/readme.py
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
README = ROOT / "README.md"
RESULTS = ROOT / "benchmarks" / "results"
PAGES = (ROOT / "docs" / "explain.md", ROOT / "docs" / "coming-from-alibi.md")
"""Pages that compare our medians on the digits with those of other tools."""
APPLICATIONS = ROOT / "docs" / "applications.md"
METHOD = ROOT / "docs" / "method.md"
BEGIN, END = "<!-- figures: {} -->\n", "<!-- end of figures -->\n"
HEAD = ("what", "measured", "`python benchmarks/...`")
Row = tuple[str, str, str]


def read(name: str) -> Any:
    """A file of results."""
    return json.loads((RESULTS / f"{name}.json").read_text(encoding="utf-8"))


def digits(kind: str) -> str:
    line = next(line for line in read("explain")["digits"]["medians"] if line["kind"] == kind)
    return (
        f"{line['valid']:.0%} valid; medians: {line['pixels']:.0f} pixels, l1 {line['l1']:.1f}, l2 {line['l2']:.2f}, "
        f"{line['queries']:,.0f} queries"
    )


def tables() -> list[Row]:
    lines = read("explain").get("tabular", {}).get("table", [])
    if not lines:
        return []
    least = {kind: min((line["valid"] for line in lines if line["kind"] == kind), default=0.0) for kind in ("PN", "PP")}
    count, rows = len({(line["data"], line["model"]) for line in lines}), min(line["rows"] for line in lines)
    kinds = ", ".join(dict.fromkeys(line["model"] for line in lines))
    what = f"PN and PP of {rows} table rows for each of {count} models ({kinds})"
    fewest = f"valid: PN at least {least['PN']:.0%} of each, PP {least['PP']:.0%}"
    return [(what, "all valid" if min(least.values()) == 1 else fewest, "explain.py --tabular")]


def rows_beside() -> Row:
    cases = read("tables")["summary"]
    mine = [case["lines"]["zomirror"] for case in cases.values()]
    parts = [case["pairs"]["NICE proximity"] for case in cases.values()]
    ratios = [pair["ours"]["distance"] / pair["theirs"]["distance"] for pair in parts]
    changed = [pair[who]["columns"] for who in ("ours", "theirs") for pair in parts]
    ours, theirs = changed[: len(parts)], changed[len(parts) :]
    names = ", ".join(dict.fromkeys(name.partition(",")[0] for name in cases))
    count, asked = sum(one["count"] for one in mine), [one["rows"] for one in mine]
    what = f"PN of {count:,} table rows on {len(cases)} models ({names}), beside NICE (proximity)"
    all_ = "all exist and are valid" if min(one["covered"] for one in mine) == 1 else "not all are valid"
    measured = (
        f"{all_}; {min(ours):.2f} to {max(ours):.2f} columns changed ({min(theirs):.2f} to {max(theirs):.2f}), "
        f"{min(ratios):.0%} to {max(ratios):.0%} of its median distance; medians of {min(asked):.0f} "
        f"to {max(asked):.0f} rows asked"
    )
    return what, measured, "tables.py"


def rounded() -> Row:
    lines = read("margins")["table"]
    mine = [line["default"] for line in lines]
    valid, kept = (sum(one[name] for one in mine) for name in ("valid", "rounded"))
    papers = [line["kappa=0"] for line in lines]
    lost = 1 - sum(one["rounded"] for one in papers) / sum(one["valid"] for one in papers)
    more = [line["median_more"] for line in lines if line["model"] == "lenet"]
    kinds = {name: [line["kind"] for line in lines if line["model"] == name] for name in ("lenet", "resnet20")}
    digits_, photos = (", ".join(kinds[name]) for name in ("lenet", "resnet20"))
    what = f"answers about digits ({digits_}) and CIFAR-10 images ({photos}) that stay valid when rounded to 8 bits"
    measured = (
        f"{kept} of {valid} (with `kappa=0` {lost:.0%} are lost); under noise of 0.001 at least "
        f"{min(one['noisy'] for one in mine):.1%}; median l1 of digits {min(more):+.1%} "
        f"to {max(more):+.1%}"
    )
    return what, measured, "margins.py"


def fewer() -> Row:
    cases = read("queries")["summary"]
    parts = sorted(case["median_fraction"] for case in cases if case["median_fraction"] is not None)
    reached, all_ = sum(case["reached"] for case in cases), sum(case["images"] for case in cases)
    what = "explanations: queries of the recommended method to come within 2 % of the final F of ZO-AdaExpMD"
    measured = f"medians: {parts[0]:.1%} to {parts[-1]:.1%} of its 40,200; reached in {reached} of {all_} runs"
    return what, measured, "queries.py"


def beside() -> Row:
    cases = read("synthetic")["cases"]
    ahead = sum(all(_at_or_below(case["ends"]["zomirror"], end) for end in case["ends"].values()) for case in cases)
    what = "F after 20,000 queries against ten other optimisers: two problems, d = 100 to 10,000, with or without noise"
    return what, f"lowest, or equal to the lowest, in {ahead} of {len(cases)} cases", "synthetic.py"


def _at_or_below(ours: dict[str, Any], other: dict[str, Any]) -> bool:
    """Compared to nine digits; a run without a finite end counts as higher."""
    return not other.get("final") or bool(ours["final"] <= other["final"] * (1 + 1e-9))


def growth() -> Row:
    lines = read("scaling")["table"]
    found = {(line["d"], line["method"]): line["median"] for line in lines}
    few, many = 100, 100_000
    measured = f"{found[few, 'AdaExpMD']:,} and {found[many, 'AdaExpMD']:,}"
    missed = min((line for line in lines if line["method"] == "PSGD" and line["median"] is None), key=lambda x: x["d"])
    what = f"queries of ZO-AdaExpMD to close 90 % of the gap at d = {few} and d = {many:,}, ten features relevant"
    return what, f"{measured} (ZO-PSGD at d = {missed['d']:,}: more than {missed['cap']:,})", "scaling.py"


def attacks() -> Row:
    lines = [line for line in read("attack")["table"] if line["model"] == "lenet" and line.get("success")]
    ours = lines[0]
    others = [line for line in lines if not line["attack"].startswith("zomirror")]
    nearest = min(others, key=lambda line: line["l1"])
    measured = (
        f"{ours['success']:.0%} of {ours['images']}; l1 {ours['l1']:.1f} with {ours['queries']:,.0f} queries "
        f"({nearest['attack']}: {nearest['l1']:.1f} with {nearest['queries']:,.0f})"
    )
    return "sparse attacks on the bundled LeNet: success, medians", measured, "attack.py"


def kills() -> Row:
    lines = read("chaos")["results"].values()
    runs, killed = sum(line["runs"] for line in lines), sum(line["kills"] for line in lines)
    equal, prefix = (sum(line.get(name, 0) for line in lines) for name in ("equal", "prefix"))
    measured = f"{equal} of {runs} runs ended bit for bit the same; {prefix} were cut short by `max_sent`, at a prefix"
    return f"{killed:,} kills (SIGKILL) at random moments", measured, "chaos.py"


def workers() -> Row:
    ratio = read("throughput")["ratio"]
    return "throughput of two workers, against one", f"{ratio:.2f} times", "throughput.py"


def figures() -> list[Row]:
    """Every row of the table, from the stored results."""
    return [
        ("pertinent negatives of 100 MNIST digits on the bundled LeNet", digits("PN"), "explain.py"),
        ("pertinent positives of the same digits", digits("PP"), "explain.py"),
        *tables(),
        rows_beside(),
        rounded(),
        fewer(),
        beside(),
        growth(),
        attacks(),
        workers(),
        kills(),
    ]


def markdown(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    return "".join(f"| {' | '.join(row)} |\n" for row in (head, ["---"] * len(head), *rows))


def table() -> str:
    """The table of the README in Markdown."""
    return markdown(HEAD, ((what, measured, f"`{script}`") for what, measured, script in figures()))


def attack_table(model: str) -> str:
    """Every attack on a network; cells without a measurement or a success stay empty."""
    columns = {"l1": ".1f", "l2": ".2f", "changed": ",.0f", "queries": ",.0f", "first": ",.0f"}
    rows = [
        [line["attack"], str(line["images"]), f"{line['success']:.0%}"]
        + [format(line[key], form) if key in line else "" for key, form in columns.items()]
        + [f"{line['ours_at_theirs']:,.0f} / {line['theirs']:,.0f}" if "theirs" in line else ""]
        for line in read("attack")["table"]
        if line["model"] == model and line["images"]
    ]
    names = ("l1", "l2", "pixels", "queries", "first", "ours / theirs")
    return markdown(("attack", "images", "success", *names), rows)


def attack_curves(model: str) -> str:
    """The median l1 after fewer queries, where an attack's queries were measured; "-" while half had no success."""
    lines = [line for line in read("attack")["curves"] if line["model"] == model and "l1" in line]
    known: list[dict[str, Any]] = [line["l1"] for line in lines]
    budgets = max((list(one) for one in known), key=len)
    rows = []
    for line in lines:
        sizes = [line["l1"].get(budget, "") for budget in budgets]
        cells = ["-" if size is None else size if size == "" else f"{size:.1f}" for size in sizes]
        first = "-" if line["first"] is None else f"{line['first']:,.0f}"
        rows.append([line["attack"], str(line["images"]), first, *cells])
    return markdown(("attack", "images", "first", *(f"{int(budget):,}" for budget in budgets)), rows)


def attack_pixels(model: str) -> str:
    """How many images need at most 5, 10, ... pixels after 300, 1,000 and 3,000 queries, and the median number."""
    lines = [line for line in read("attack")["curves"] if line["model"] == model and "within" in line]
    shown, budgets = ("5", "10", "20", "50"), ("100", "300", "1000", "3000")
    rows = [
        [line["attack"], str(line["images"])]
        + [" / ".join(f"{line['within'][most][budget]:.0%}" for budget in budgets) for most in shown]
        + ["-" if (median := line["pixels"]["3000"]) is None else f"{median:.0f}"]
        for line in lines
    ]
    return markdown(("attack", "images", *(f"at most {most}" for most in shown), "pixels at 3,000"), rows)


def photograph_table() -> str:
    """Medians of the photographs, ours by default and everyone's on a grey ground."""
    found = read("regions")
    recognised = [line for line in found["photos"].values() if line["recognised"]]
    lines = [(f"{kind}, every default", [line[kind] for line in recognised]) for kind in ("PP", "PN")]
    for part, own in (("grey", "zomirror, 300 queries"), ("rex", "zomirror, 2,000 queries")):
        names = dict.fromkeys(name for line in found.get(part, {}).values() for name in line)
        lines += [
            (f"{own if name == 'zomirror' else name}, grey", [line[name] for line in found[part].values()])
            for name in names
        ]
    head = ("search", "photographs", "valid", "part of the picture", "connected parts", "queries", "CPU seconds")
    return markdown(head, [_photograph_row(name, some) for name, some in lines])


def _photograph_row(name: str, some: list[dict[str, Any]]) -> list[str]:
    ours = [one for one in some if one["percent"] is not None]
    right = [one for one in ours if ("keeps" not in one and one["valid"]) or "grey" in one.get("keeps", ())]
    if "default" in name and "PP" in name:
        right = [one for one in right if len(one["keeps"]) == 3]
    middle = {key: median(one[key] for one in ours) for key in ("percent", "pieces", "rows", "seconds")}
    shown = f"{middle['percent']:.1f} %", f"{middle['pieces']:g}", f"{middle['rows']:,.0f}", f"{middle['seconds']:.1f}"
    return [name, str(len(some)), str(len(right)), *shown]


def synthetic_table() -> str:
    """F after 20,000 queries on each synthetic problem: five methods, and the best of the others."""
    shown = ("zomirror", "ZO-AdaExpMD (m = 50)", "coordinate descent, prox", "finite-difference FISTA", "ZO-PSGD")
    rows = []
    for case in read("synthetic")["cases"]:
        ends = {name: end["final"] for name, end in case["ends"].items() if end.get("final")}
        rest = {name: end for name, end in ends.items() if name not in shown}
        best = min(rest, key=lambda name: rest[name])
        cells = [f"{ends[name]:.5g}" if name in ends else "" for name in shown]
        rows.append([case["case"], *cells, f"{rest[best]:.5g} ({best})"])
    return markdown(("problem", *shown, "best package"), rows)


def variation_table() -> str:
    """Medians of the digits' PNs with the default settings and with each variation."""
    results = read("explain")
    usual = next(line for line in results["digits"]["medians"] if line["kind"] == "PN") | {"options": {}}
    rows = []
    for line in (usual, *results["varied"]["table"]):
        options = ", ".join(f"`{name}={value:_}`" for name, value in line["options"].items()) or "the default"
        sizes = (f"{line['l1']:.1f}", f"{line['l2']:.2f}", f"{line['pixels']:.0f}", f"{line['queries']:,.0f}")
        rows.append((options, f"{line['valid']:.0%}", *sizes))
    return markdown(("options", "valid", "l1", "l2", "non-zero pixels", "queries"), rows)


def put(text: str, name: str = "benchmarks/readme.py", content: Callable[[], str] = table) -> str:
    """The page with its table `name` replaced by `content()`."""
    before, rest = text.split(BEGIN.format(name))
    return before + BEGIN.format(name) + "\n" + content() + "\n" + END + rest.split(END, 1)[1]


def applied(text: str) -> str:
    """The page of the applications with its tables replaced."""
    for model in ("lenet", "resnet20"):
        text = put(text, f"attacks on {model}", partial(attack_table, model))
        text = put(text, f"attack queries on {model}", partial(attack_curves, model))
        text = put(text, f"attack pixels on {model}", partial(attack_pixels, model))
    return put(text, "photographs", photograph_table)


def beside_others(text: str) -> str:
    """The page with our two rows replaced, and its table of variations if it has one."""
    for line in read("explain")["digits"]["medians"]:
        start, count = f"| zomirror | {line['kind']} |", len(read("explain")["digits"]["rows"]) // 2
        now = (
            f"{start} {line['valid'] * count:.0f} of {count} | {line['l1']:.1f} | {line['l2']:.2f} | "
            f"{line['pixels']:.0f} | {line['queries']:,.0f} |"
        )
        text = re.sub(rf"^{re.escape(start)}.*$", now, text, flags=re.MULTILINE)
    return (
        put(text, "variations", variation_table)
        if "varied" in read("explain") and BEGIN.format("variations") in text
        else text
    )


if __name__ == "__main__":
    for page in PAGES:
        page.write_text(beside_others(page.read_text(encoding="utf-8")), encoding="utf-8")
    APPLICATIONS.write_text(applied(APPLICATIONS.read_text(encoding="utf-8")), encoding="utf-8")
    METHOD.write_text(put(METHOD.read_text(encoding="utf-8"), "synthetic", synthetic_table), encoding="utf-8")
    README.write_text(put(README.read_text(encoding="utf-8")), encoding="utf-8")
