"""Compare alibi's pertinent negatives of the bundled LeNet with ours, on the same digits.

The digits are those of explain.py, whose results are ours, and a hundred others that were not used to choose the search
or its default weights. alibi (CEM) runs in an environment of its own with the settings of its MNIST example and exact
gradients: 10 x 1,000 iterations, which without gradients would take about 20 million queries. It is run on
probabilities, as documented, and on logits, which suit it better. Every answer is checked by querying the network
again. Digits for which alibi found nothing are left out of its medians and of ours.

    python benchmarks/alibi.py                             runs what results/alibi.json lacks, prints the table
    python benchmarks/alibi.py --case logits --fresh       repeats one case, alibi's runs and ours
    python benchmarks/alibi.py --fresh-ours                repeats our runs on the other digits
    python benchmarks/alibi.py --quick                     prints the stored table
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
import tempfile
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")
sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import numpy as np
from benchmarks.explain import FIRST, digit_rows, digits
from benchmarks.kit import peer_env
from benchmarks.kit.machine import RESULTS, machine, store
from numpy.typing import NDArray

import zomirror as zm
from zomirror import models


@dataclass(frozen=True)
class Case:
    """The scores that alibi sees, the digits of each class, and the first position in the test set."""

    scores: str
    of_each: int
    first: int = FIRST


OTHERS = "logits, other digits"
CASES = {"logits": Case("logits", 10), "probabilities": Case("probabilities", 2), OTHERS: Case("logits", 10, 3_000)}
COLUMNS = ("l1", "l2", "pixels")
Row = dict[str, Any]


def theirs(scores: str, indices: list[int], images: NDArray[np.float32]) -> list[Row]:
    """alibi's answers for the digits."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "inputs.npz"
        np.savez(path, images=images, logits=zm.as_classifier(models.path("lenet"))(images))
        script = Path(peer_env.__file__).with_name("alibi_run.py")
        arguments = (str(path), str(models.path("lenet")), scores)
        reply = peer_env.run(script, *arguments, environment="explainers", timeout=4 * 3_600)
    return rows_of(indices, images, np.array(reply["seen"], np.float32))


def rows_of(indices: list[int], images: NDArray[np.float32], seen: NDArray[np.float32]) -> list[Row]:
    """The answers as numbers; the network is queried with each again."""
    model = zm.as_classifier(models.path("lenet"))
    changed = model(images).argmax(axis=1) != model(seen).argmax(axis=1)
    rows = []
    for i, index in enumerate(indices):
        x = (seen[i] - images[i]).astype(np.float64)
        size = {"l1": float(np.abs(x).sum()), "l2": float(np.linalg.norm(x)), "pixels": int(np.count_nonzero(x))}
        # If alibi found nothing, its answer is an empty image.
        rows.append({"index": index, "valid": bool(changed[i] and seen[i].any())} | size)
    return rows


def table(stored: dict[str, list[Row]], others: list[Row]) -> list[Row]:
    """Medians of alibi, and ours on the same digits."""
    own = json.loads((RESULTS / "explain.json").read_text())["digits"]["rows"]
    mine = {row["index"]: row for row in (*own, *others) if row["kind"] == "PN"}
    lines = []
    for case, rows in stored.items():
        good = [row for row in rows if row["valid"]]
        line: Row = {"case": case, "digits": len(rows), "valid": len(good) / len(rows)}
        line["ours_valid"] = sum(mine[row["index"]]["valid"] for row in rows) / len(rows)
        for column in COLUMNS if good else ():
            ours = [mine[row["index"]][column] for row in good]
            line[column] = statistics.median(row[column] for row in good)
            line[f"ours_{column}"] = statistics.median(ours)
            line[f"smaller_{column}"] = float(np.mean([a < row[column] for a, row in zip(ours, good, strict=True)]))
        lines.append(line)
    return lines


def show(lines: list[Row]) -> None:
    head = "".join(f"{name:>9}{'ours':>8}{'smaller':>9}" for name in COLUMNS)
    print(f"{'alibi on':<22}{'digits':>7}{'valid':>7}{'ours':>6}{head}   medians")
    for line in lines:
        cells = [
            f"{line[name]:>9.2f}{line[f'ours_{name}']:>8.2f}{line[f'smaller_{name}']:>9.0%}"
            for name in COLUMNS
            if name in line
        ]
        valid = f"{line['valid']:>7.0%}{line['ours_valid']:>6.0%}"
        print(f"{line['case']:<22}{line['digits']:>7}{valid}{''.join(cells)}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--case", choices=tuple(CASES))
    parser.add_argument("--fresh", action="store_true", help="repeat stored runs")
    parser.add_argument("--fresh-ours", action="store_true", help="repeat our runs on the other digits")
    parser.add_argument("--quick", action="store_true", help="run nothing, print the stored table")
    given = parser.parse_args()
    path = RESULTS / "alibi.json"
    kept = json.loads(path.read_text()) if path.exists() else {}
    stored: dict[str, list[Row]] = kept.get("rows", {})
    others: list[Row] = kept.get("ours", [])
    for name, case in CASES.items():
        if given.quick or given.case not in (None, name):
            continue
        missing = name not in stored or given.fresh
        if name == OTHERS and (missing or not others or given.fresh_ours):
            others = [asdict(row) for row in digit_rows(case.of_each, ("PN",), case.first)[0]]
        if missing:
            chosen = list(digits(zm.as_classifier(models.path("lenet")), case.of_each, case.first))
            stored[name] = theirs(case.scores, [i for i, _ in chosen], np.stack([image for _, image in chosen]))
        store("alibi", {"machine": machine(), "table": table(stored, others), "rows": stored, "ours": others})
    show(table(stored, others))


if __name__ == "__main__":
    main()
