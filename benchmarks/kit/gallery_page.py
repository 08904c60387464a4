"""Write docs/gallery.md from results/sparse.json, gallery.json and prior.json; nothing is measured here.

python benchmarks/kit/gallery_page.py
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent.parent
RESULTS, PAGE = ROOT / "benchmarks" / "results", ROOT / "docs" / "gallery.md"
HEAD = """# Published methods side by side

`zm.methods` has these methods as presets, so that you can compare them with the recommended one in a single argument,
`method=zm.methods.zo_adamm(eta=10)`, or with `zomirror minimize --method zo_adamm --eta 10`:

| preset | idea | by |
| --- | --- | --- |
| `zo_expmd`, `zo_ada_expmd`, `zo_psgd` | entropy or Euclidean map, fixed or adaptive step | Shao and Albayrak, 2022 |
| `zo_ao_expmd`, `zo_exp_storm` | accelerated and optimistic; variance reduced | the same authors |
| `zo_scg`, `zo_fw` | Frank-Wolfe steps over the box | Balasubramanian and Ghadimi, 2018; Sahu et al., 2019 |
| `zo_lasso` | the gradient by a de-biased LASSO | Wang et al., 2018 |
| `zoro` | the gradient by compressed sensing | Cai et al., 2022 |
| `zo_truncated`, `zo_ht` | at most s entries after a step | de Vazelhes et al., 2022, for the second |
| `zo_sparse` | perturbations of a random part of the coordinates | Ohta et al., 2020 |
| `zo_adamm` | adaptive moments | Chen et al., 2019 |
| `zo_signsgd` | signs of the estimate | Liu et al., 2019 |

Each file in `methods/gallery/` begins with its equation. Where a paper's radius shrinks with the iterations, ours is
constant, and `zo_lasso` has the entropy map by default, because the p-norm map of the paper has no closed form on a
box. Methods with a constant step need `eta`; `zoro`, `zo_truncated` and `zo_ht` need to know how many coordinates
matter.
"""


def table(head: list[str], rows: list[list[str]]) -> str:
    lines = ["| " + " | ".join(cells) + " |" for cells in [head, ["---"] * len(head), *rows]]
    return "\n".join(lines) + "\n"


def number(value: float | None) -> str:
    return "-" if value is None else f"{value:.2g}"


def compared(rows: list[dict[str, Any]]) -> str:
    problems = list(dict.fromkeys(row["problem"] for row in rows))
    names = list(dict.fromkeys(row["method"] for row in rows))
    found = {(row["problem"], row["method"]): row for row in rows}
    budgets = [next(row["queries"] for row in rows if row["problem"] == p and "queries" in row) for p in problems]
    head = ["method", *(f"{p} ({n:,})" for p, n in zip(problems, budgets, strict=True))]
    body = [[f"`{name}`", *(number(found.get((p, name), {}).get("end")) for p in problems)] for name in names]
    return table(head, body)


def sparse(cases: list[dict[str, Any]]) -> str:
    body = [
        [row["case"], f"{row['queries']:,}", number(row["limit"]), number(row["median"]), number(row["largest"])]
        for row in cases
    ]
    return table(["problem", "queries", "aim", "median", "largest"], body)


def dense(rows: list[dict[str, Any]]) -> str:
    peers = list(dict.fromkeys(peer for row in rows for peer in row["peers"]))
    body = [
        [f"{row['function']}, d = {row['d']:,}", number(row["median"])]
        + [number(row["peers"].get(peer, {}).get("least")) for peer in peers]
        for row in rows
    ]
    return table(["function", "zomirror", *peers], body)


def read(name: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((RESULTS / f"{name}.json").read_text())
    return found


def main() -> None:
    told, gallery, prior = read("sparse"), read("gallery"), read("prior")
    parts = [
        HEAD,
        "## Per query\n",
        "`gallery.py`: the least F of an iterate within the budget in parentheses, relative to the start. A method with"
        " a constant\nstep has the best of three in hindsight, and one that takes a sparsity is told the true one."
        " DISTANCE and MAGNITUDE\nare those of GraCe (Qiu and Tong, 2024) with d = 1,000; the digit is an explanation"
        " as in the paper; the quadric has its\nminimum at 0 and a dense start, which is not what a method for sparse"
        " solutions is made for.\n",
        compared(gallery["rows"]),
        "![One panel for each problem, one dot for each method](images/gallery.png)\n",
        "## Finding the coordinates that matter\n",
        "`sparse.py`: f without its noise at the returned point of the recommended method, relative to the start, with"
        " nothing set but\nthe bounds and the budget. d = 10,000 and ten coordinates matter unless it says otherwise;"
        " ten instances each.\n",
        sparse(told["cases"]),
        "![f of each instance beside the aim; dense functions beside other optimisers](images/sparse.png)\n",
        "GraCe is told the sparsity and reaches 0.017 on DISTANCE after 1,000 queries, 0.0045 on MAGNITUDE after 1,600"
        " and 0.324 on\nATTACK after 20,000; with noise of 1e-3 it never falls below its start. (Its authors' program,"
        " run by hand.)\n",
    ]
    if growth := told.get("growth"):
        counts = ", ".join(f"{row['median']:g} at d = {row['d']:,}" for row in growth)
        parts.append(f"Queries until DISTANCE is at 0.01 of its start, medians: {counts}.\n")
    if rows := told.get("dense"):
        parts += [
            "## Dense functions\n",
            "No penalty, no bounds, 100 d queries; the least f that was asked, and medians of ours. The peers have 20"
            " seconds of\nprocessor time each.\n",
            dense(rows),
            "The recommended method is made for sparse solutions; here its refinement is L-BFGS on finite differences,"
            " and it is as\ngood as SciPy's. On Rastrigin's function, which has very many minima, the others are ahead."
            "\n",
        ]
    if rows := told.get("noise"):
        parts += [
            "## Strong noise\n",
            "The part of the way from the start to the minimum without noise that is left after 20,000 queries; the"
            " largest of three\nseeds.\n",
            table(
                ["problem", "noise", "left"],
                [
                    [f"{row['function']}, d = {row['d']:,}", f"{row['noise']}, {row['size']:g}", number(row["largest"])]
                    for row in rows
                ],
            ),
        ]
    parts += [
        "## A guess of the gradient\n",
        "`prior.py`: the queries until F is within 2 % of the final F of ZO-AdaExpMD, with the gradient of another"
        " LeNet as\n`prior`, and with random numbers; medians of three digits, at most 15,000.\n",
        table(
            ["case", "no guess", "another LeNet", "random numbers"],
            [
                [f"{row['kind']}, {row['loss']}", *(f"{row[n]:,}" for n in ("none", "surrogate", "random"))]
                for row in prior["cases"]
            ],
        ),
        "The gradients of the two networks have a cosine of 0 to 0.5 along the way, so there is little to gain. The"
        " random guess\nwas not used.\n",
    ]
    PAGE.write_text("\n".join(parts))
    print(f"written: {PAGE.relative_to(ROOT)}")


if __name__ == "__main__":
    main()
