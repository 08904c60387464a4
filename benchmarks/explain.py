"""Measure explanations with default settings: how many are valid, their sparsity and size, and their queries.

Digits: the first ten of each class of the MNIST test set from position 7,000 on that the bundled LeNet classifies
correctly. (Some of them were looked at when the default weights were chosen; alibi.py has a hundred that were not.)
Tables: six models on scikit-learn's breast cancer and wine, fitted on one part of the rows and explained on fifty of
the others. The baseline of a PP is the mean row; if the model gives the mean row the class as surely as the explained
row, it is the mean row of the second most likely class. Every answer is checked by querying the model again, and its
queries are counted on the side of the model.

    python benchmarks/explain.py              100 digits, PP and PN; writes the digits of results/explain.json
    python benchmarks/explain.py --tabular    12 models, 50 rows each; writes the tables of results/explain.json
    python benchmarks/explain.py --tabular --model linear      one of them only
    python benchmarks/explain.py --varied     PN of the same digits with other weights and budgets; writes `varied`
    python benchmarks/explain.py --cost       time outside and inside the model, and by lockstep; writes `cost`
    python benchmarks/explain.py --curve digits        F by budget beside the search before; writes `curve`
    python benchmarks/explain.py --quick      ten digits (with --tabular: five rows of each model), prints only
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
import sys
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")  # batches are too small for several threads

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import numpy as np
from benchmarks.kit.explain_curve import cost, curve, lockstep
from numpy.typing import NDArray

import zomirror as zm
from zomirror import datasets, models
from zomirror.classifiers import Classifier

RESULTS = Path(__file__).resolve().parent / "results" / "explain.json"
BUDGET, TABLE_BUDGET = 2_000, 10_000
FIRST = 7_000
"""The position in the test set from which digits are taken."""
TOGETHER = 10
"""Digits in a joint batch. For tables it is all rows: a forest takes as long for one row as for a hundred."""
KINDS = ("PN", "PP")
VARIATIONS: tuple[dict[str, Any], ...] = (
    {"l2": 0.1},
    {"l2": 0.2},
    {"budget": 500},
    {"budget": 1_000},
    {"budget": 5_000},
)
"""Variations of the default: fewer and darker pixels, more and fainter ones; fewer queries."""
Array = NDArray[Any]

OTHERS = (
    {"tool": "alibi", "kind": "PN", "valid": None, "l1": 10.9, "l2": 1.56, "pixels": 77, "queries": 20_900_000},
    {"tool": "alibi", "kind": "PP", "valid": 0.1, "l1": None, "l2": None, "pixels": None, "queries": None},
    {"tool": "MAXi", "kind": "PN", "valid": None, "l1": 14.9, "l2": None, "pixels": None, "queries": 251_002},
    {"tool": "MAXi", "kind": "PP", "valid": None, "l1": 28.3, "l2": None, "pixels": None, "queries": 251_002},
)
"""Medians of other tools, measured by others on another small MNIST network; MAXi gives no exact zeros."""


@dataclass(frozen=True)
class Row:
    """One explanation, as measured from outside."""

    index: int
    kind: str
    label: int
    contrast: int
    valid: bool
    """The model, queried again, confirms that the class is kept (PP) or another (PN); a PP is not empty."""
    pixels: int
    l1: float
    l2: float
    objective: float
    queries: int
    status: str


class Counted:
    """A model that counts its rows."""

    def __init__(self, model: Any) -> None:
        self.model, self.rows = zm.as_classifier(model), 0

    def __call__(self, batch: Array) -> Array:
        """Scores of the batch, counted."""
        self.rows += len(batch)
        return self.model(batch)


def explained(model: Any, inputs: list[Array], kind: str, budget: int = BUDGET, **options: Any) -> list[zm.Explanation]:
    """Explanations, their queries checked against the count of the model."""
    counted = Counted(model)
    found = zm.explain_many(
        counted, inputs, kind=kind, budget=budget, lockstep=len(inputs), rng=0, progress=False, **options
    )
    if counted.rows != sum(e.nfev for e in found) or max(e.nfev for e in found) > budget:
        raise SystemExit(f"the model counted {counted.rows} rows, the explanations say {[e.nfev for e in found]}")
    return found


def holds(model: Classifier, e: zm.Explanation) -> bool:
    """Whether the explanation is valid, checked by querying the model with an input rebuilt from its parts."""
    seen = e.x0 + e.x if e.kind == "PN" else e.perturbed
    label = int(np.argmax(model(np.asarray(seen, e.x0.dtype)[None])[0]))
    return bool(e.valid and e.nnz == np.count_nonzero(e.x) > 0 and (label == e.label) == (e.kind == "PP"))


# --- digits ---------------------------------------------------------------------------------------------------


def digits(model: Classifier, of_each: int, first: int = FIRST) -> Iterator[tuple[int, Array]]:
    """Positions in the test set, and images (1, 28, 28) in [0, 1]."""
    test = datasets.mnist("test")
    images = test.images[first:, None].astype(np.float32) / np.float32(255)
    labels = test.labels[first:]
    right = np.argmax(model(images), axis=1) == labels
    for label in range(10):
        for i in np.flatnonzero(right & (labels == label))[:of_each]:
            yield first + int(i), images[i]


def digit_rows(
    of_each: int, kinds: tuple[str, ...] = KINDS, position: int = FIRST, **options: Any
) -> tuple[list[Row], float]:
    """The rows of some kinds, and their time in seconds."""
    model = zm.as_classifier(models.path("lenet"))
    chosen = list(digits(model, of_each, position))
    rows, started = [], time.process_time()
    for kind in kinds:
        for first in range(0, len(chosen), TOGETHER):
            part = chosen[first : first + TOGETHER]
            found = explained(model, [image for _, image in part], kind, **options)
            rows += [digit_row(model, i, e) for (i, _), e in zip(part, found, strict=True)]
            print(f"{kind} {len(part)} of class {found[0].label}", end="  \r", file=sys.stderr, flush=True)
    return rows, time.process_time() - started


def digit_row(model: Classifier, index: int, e: zm.Explanation) -> Row:
    """The numbers of one explanation."""
    return Row(
        index=index,
        kind=e.kind,
        label=e.label,
        contrast=e.contrast_label,
        valid=holds(model, e),
        pixels=int(np.count_nonzero(e.x)),
        l1=float(np.abs(e.x).sum(dtype=np.float64)),
        l2=float(np.linalg.norm(e.x.astype(np.float64))),
        objective=e.objective,
        queries=e.nfev,
        status=e.status.name,
    )


def medians(rows: list[Row]) -> list[dict[str, Any]]:
    """One line of the table for each kind."""
    table = []
    for kind in KINDS:
        mine = [row for row in rows if row.kind == kind]
        line: dict[str, Any] = {"tool": "zomirror", "kind": kind, "valid": sum(r.valid for r in mine) / len(mine)}
        for name in ("l1", "l2", "pixels", "queries"):
            values = [getattr(row, name) for row in mine]
            line[name] = statistics.median(values)
            line[f"{name}_range"] = [min(values), max(values)]
        table.append(line)
    return table


def varied(of_each: int) -> Iterator[dict[str, Any]]:
    """The medians of PN with each variation."""
    for options in VARIATIONS:
        rows, _ = digit_rows(of_each, ("PN",), **options)
        line: dict[str, Any] = {
            "options": options,
            "digits": len(rows),
            "valid": sum(r.valid for r in rows) / len(rows),
        }
        for name in ("l1", "l2", "pixels", "queries"):
            line[name] = statistics.median(getattr(row, name) for row in rows)
        yield line


def show_digits(table: list[dict[str, Any]]) -> None:
    print(f"{'tool':<10} {'kind':<4} {'valid':>6} {'l1':>6} {'l2':>6} {'pixels':>7} {'queries':>11}   medians")
    for kind in KINDS:
        for line in [line for line in (*table, *OTHERS) if line["kind"] == kind]:
            cells = [
                "-" if line[name] is None else form.format(line[name])
                for name, form in (
                    ("valid", "{:.0%}"),
                    ("l1", "{:.2f}"),
                    ("l2", "{:.2f}"),
                    ("pixels", "{:.0f}"),
                    ("queries", "{:,.0f}"),
                )
            ]
            widths = (6, 6, 6, 7, 11)
            print(f"{line['tool']:<10} {kind:<4} " + " ".join(f"{c:>{w}}" for c, w in zip(cells, widths, strict=True)))


# --- tables ---------------------------------------------------------------------------------------------------


def estimators() -> dict[str, Any]:
    """Unfitted models of every kind, by name."""
    from sklearn.ensemble import GradientBoostingClassifier, HistGradientBoostingClassifier, RandomForestClassifier
    from sklearn.linear_model import LogisticRegression
    from sklearn.neural_network import MLPClassifier
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler
    from sklearn.svm import SVC

    return {
        "random forest": RandomForestClassifier(random_state=0),
        "gradient boosting": GradientBoostingClassifier(random_state=0),
        "histogram boosting": HistGradientBoostingClassifier(random_state=0),
        "linear": make_pipeline(StandardScaler(), LogisticRegression()),
        "SVM pipeline": make_pipeline(StandardScaler(), SVC(random_state=0)),
        "neural network": make_pipeline(
            StandardScaler(), MLPClassifier(hidden_layer_sizes=(32,), alpha=0.1, max_iter=1_000, random_state=0)
        ),
    }


@dataclass(frozen=True)
class Table:
    """One model on one data set, one kind."""

    data: str
    model: str
    accuracy: float
    kind: str
    rows: int
    valid: float
    features: float
    """The median number of changed (PN) or present (PP) features."""
    queries: float
    fixed_valid: float
    """The valid fraction with a third of the features fixed; fixed features were unchanged in all."""
    seconds: float
    moved: int = 0
    """PPs whose baseline is the mean row of the second most likely class, see `elsewhere`."""


def elsewhere(model: Any, e: zm.Explanation, means: Array, options: dict[str, Any]) -> zm.Explanation:
    """The PP again, with the mean row of the second most likely class as the baseline, as its message advises.

    If the model gives the baseline the class as surely as x0, nothing of x0 has to be present.
    """
    second = int(np.argsort(-e.scores_before)[1])
    return explained(model, [e.x0], "PP", **options | {"baseline": means[second]})[0]


def tables(count: int, only: str | None, kinds: tuple[str, ...]) -> Iterator[Table]:
    """Explain rows of both data sets with every model, or with one."""
    from sklearn.datasets import load_breast_cancer, load_wine
    from sklearn.model_selection import train_test_split
    from threadpoolctl import threadpool_limits

    for load in (load_breast_cancer, load_wine):
        data = load()
        X, X_test, y, y_test = train_test_split(data.data, data.target, test_size=60, random_state=0)
        # A PN may move both ways within the range of the data; the baseline of a PP is the mean row.
        options: dict[str, Any] = {
            "bounds": (data.data.min(axis=0), data.data.max(axis=0)),
            "signed": True,
            "budget": TABLE_BUDGET,
        }
        means = np.stack([X[y == label].mean(axis=0) for label in range(int(y.max()) + 1)])
        fixed = np.random.default_rng(0).permutation(X.shape[1]) < X.shape[1] // 3
        inputs = list(X_test[:count])
        for name, model in estimators().items():
            if only not in (None, name):
                continue
            with threadpool_limits(limits=1):
                model.fit(X, y)
                asked = zm.as_classifier(model)
                for kind in kinds:
                    mine = options | ({"baseline": X.mean(axis=0)} if kind == "PP" else {})
                    started = time.process_time()
                    found = explained(model, inputs, kind, **mine)
                    moved = sum(e.status is zm.Status.TARGET for e in found)
                    found = [e if e.status is not zm.Status.TARGET else elsewhere(model, e, means, mine) for e in found]
                    seconds = (time.process_time() - started) / len(inputs)
                    again = explained(model, inputs[: max(1, count // 5)], kind, fixed=fixed, **mine)
                    for e in again:
                        if not np.array_equal(e.perturbed[fixed], e.x0[fixed]):
                            raise SystemExit(f"{name} on {load.__name__}: a fixed feature was changed")
                    yield Table(
                        data=load.__name__.removeprefix("load_").replace("_", " "),
                        model=name,
                        accuracy=float(model.score(X_test, y_test)),
                        kind=kind,
                        rows=len(found),
                        valid=sum(holds(asked, e) for e in found) / len(found),
                        features=statistics.median(e.nnz for e in found),
                        queries=statistics.median(e.nfev for e in found),
                        fixed_valid=sum(e.valid for e in again) / len(again),
                        seconds=seconds,
                        moved=moved,
                    )


def shown(lines: Iterator[Table]) -> Iterator[Table]:
    """The lines, each printed at once."""
    print(
        f"{'data':<14} {'model':<18} {'accuracy':>8} {'kind':<4} {'rows':>4} {'valid':>6} {'features':>8} "
        f"{'queries':>8} {'valid, a third fixed':>20} {'seconds':>8} {'other baseline':>14}"
    )
    for line in lines:
        print(
            f"{line.data:<14} {line.model:<18} {line.accuracy:>8.1%} {line.kind:<4} {line.rows:>4} {line.valid:>6.0%} "
            f"{line.features:>8.0f} {line.queries:>8,.0f} {line.fixed_valid:>20.0%} {line.seconds:>8.2f} "
            f"{line.moved:>14}",
            flush=True,
        )
        yield line


def printed(lines: Iterator[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """The lines, each printed at once."""
    for line in lines:
        print(" ".join(f"{k} {v:.4g}" if isinstance(v, float) else f"{k} {v}" for k, v in line.items()), flush=True)
        yield line


def keep(line: Table) -> None:
    """Replace one stored line at once, so that an interrupted benchmark keeps the others."""
    kept = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
    lines = {(one["data"], one["model"], one["kind"]): one for one in kept.get("tabular", {}).get("table", [])}
    lines[line.data, line.model, line.kind] = asdict(line)
    store("tabular", {"table": [lines[key] for key in sorted(lines)]})


def store(part: str, content: dict[str, Any]) -> None:
    """Replace one part of the results."""
    machine = {
        "processor": platform.processor() or platform.machine(),
        "cores": os.cpu_count(),
        "python": platform.python_version(),
        "numpy": np.__version__,
    }
    kept = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
    kept[part] = content | {"budget": TABLE_BUDGET if part == "tabular" else BUDGET, "machine": machine}
    RESULTS.parent.mkdir(parents=True, exist_ok=True)
    RESULTS.write_text(json.dumps(kept, indent=1) + "\n")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tabular", action="store_true", help="the tables instead of the digits")
    parser.add_argument("--model", help="one model of the tables only; the stored lines of the others stay")
    parser.add_argument("--kind", choices=KINDS, help="one kind of the tables only")
    parser.add_argument("--varied", action="store_true", help="PN with other weights and budgets")
    parser.add_argument("--cost", action="store_true", help="the time outside and inside the model")
    parser.add_argument("--curve", choices=("digits", "photographs"), help="F by budget")
    parser.add_argument("--quick", action="store_true", help="a tenth of it, writes nothing")
    options = parser.parse_args()
    if options.tabular:
        for line in shown(
            tables(5 if options.quick else 50, options.model, (options.kind,) if options.kind else KINDS)
        ):
            if not options.quick:
                keep(line)
        return
    if options.cost:
        measured = {"table": [*printed(cost(2 if options.quick else 10))]}
        measured["lockstep"] = [*printed(lockstep(4 if options.quick else 32))]
        if not options.quick:
            store("cost", measured)
        return
    if options.curve:
        known = json.loads(RESULTS.read_text()).get("curve", {})
        measured = known.get(options.curve, {})
        small = 1 if options.quick or options.curve == "photographs" else 10
        measured["now"] = [*printed(curve(options.curve, small))]
        if not options.quick:
            store("curve", known | {options.curve: measured})
        return
    if options.varied:
        lines = []
        for medians_of in varied(1 if options.quick else 10):
            print(" ".join(f"{name} {value}" for name, value in medians_of.items()), flush=True)
            lines.append(medians_of)
            if not options.quick:
                store("varied", {"table": lines})
        return
    rows, seconds = digit_rows(1 if options.quick else 10)
    table = medians(rows)
    show_digits(table)
    print(f"{seconds / len(rows):.1f} seconds of one core per explanation")
    if not options.quick:
        document = {"medians": table, "others": OTHERS, "rows": [asdict(row) for row in rows]}
        store("digits", document | {"seconds_each": seconds / len(rows)})
        print(f"written: benchmarks/results/{RESULTS.name}")


if __name__ == "__main__":
    main()
