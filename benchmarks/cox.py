"""Compare sparse Cox regression from function values with scikit-survival's Coxnet, which uses derivatives.

The breast-cancer data (198 patients, 80 covariates) and a simulated set (400 patients, 2,000 covariates), standardised,
along a path of penalties with warm starts. Compared at every step: the largest difference of a coefficient relative to
the largest coefficient, the partial log-likelihood, and the selected covariates.

    python benchmarks/cox.py             writes results/cox.json
    python benchmarks/cox.py --data simulated     only that
    python benchmarks/cox.py --quick     a short path of the real data, prints only
"""

from __future__ import annotations

import argparse
import json
import os
import tempfile
import time
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np
from numpy.typing import NDArray

import zomirror as zm
from kit import peer_env  # type: ignore[import-not-found, unused-ignore]
from zomirror import datasets
from zomirror.cox import CoxLoss, cox_path, simulate, strongest

ROOT = Path(__file__).resolve().parent.parent
RESULTS = ROOT / "benchmarks" / "results" / "cox.json"
RATIO = 0.9
"""l1 / (l1 + l2)."""
TIES = "breslow"
"""Coxnet's rule for ties; these data have none."""


def coxnet(loss: CoxLoss, alphas: NDArray[np.float64]) -> tuple[NDArray[np.float64], float]:
    """Coxnet's coefficients, one row for each alpha, and its time in seconds."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "data.npz"
        np.savez(path, X=loss.X, time=loss.time, event=loss.event, alphas=alphas, l1_ratio=RATIO)
        script = Path(__file__).parent / "kit" / "coxnet_run.py"
        found = peer_env.run(script, str(path), environment="survival")
    return np.array(found["coef"]), found["seconds"]


def compare(name: str, loss: CoxLoss, parts: list[float], budget: int) -> list[dict[str, Any]]:
    """One line for each step of the path."""
    alphas = strongest(loss) / RATIO * np.array(parts)
    theirs, seconds = coxnet(loss, alphas)
    started = time.process_time()
    path = cox_path(loss, RATIO * alphas, l2=(1 - RATIO) * alphas, budget=budget, noise=0.0)
    spent = time.process_time() - started
    lines = []
    for i, part in enumerate(parts):
        ours, their = path.coefficients[i], theirs[i]
        values = loss(np.stack([ours, their, 0 * ours]))
        sizes = np.abs(their).max()
        close = next((n for n, F in zip(path.results[i].history.nfev, path.results[i].history.fun, strict=True)
                      if 1.0001 * _objective(loss, their, alphas[i]) >= F), None)  # fmt: skip
        lines.append(
            {
                "data": name,
                "part": part,
                "coefficient": float(np.abs(ours - their).max() / sizes),
                "likelihood": float(abs(values[0] - values[1]) / values[1]),
                "selected": int(np.count_nonzero(ours)),
                "theirs": int(np.count_nonzero(their)),
                "differ": int(np.count_nonzero((ours != 0) != (their != 0))),
                "differ_size": float(np.abs(ours - their)[(ours != 0) != (their != 0)].max(initial=0) / sizes),
                "queries": int(path.nfev[i]),
                "queries_to_1e-4": None if close is None else int(close),
                "seconds": spent / len(parts),
                "coxnet_seconds": seconds / len(parts),
            }
        )
    return lines


def _objective(loss: CoxLoss, b: NDArray[np.float64], alpha: float) -> float:
    return float(loss(b[None])[0] + zm.methods.ElasticNet(RATIO * alpha, (1 - RATIO) * alpha)(b))


def show(lines: list[dict[str, Any]]) -> None:
    for line in lines:
        print("  ".join(f"{k} {v:.3g}" if isinstance(v, float) else f"{k} {v}" for k, v in line.items()), flush=True)


def breast_cancer(*, quick: bool = False) -> list[dict[str, Any]]:
    """The real data."""
    data = datasets.breast_cancer().standardised()
    parts = [0.7, 0.4] if quick else [0.8, 0.6, 0.45, 0.3, 0.2, 0.1]
    loss = CoxLoss(data.X, data.time, data.event, ties=TIES)
    return compare("breast cancer", loss, parts, 6_000 if quick else 60_000)


def simulated() -> list[dict[str, Any]]:
    """2,000 covariates, of which ten matter."""
    X, times, event, _ = simulate()
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    return compare("simulated", CoxLoss(X, times, event, ties=TIES), [0.8, 0.6, 0.5], 60_000)


DATA = {"breast cancer": breast_cancer, "simulated": simulated}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", choices=DATA, action="append")
    parser.add_argument("--quick", action="store_true")
    given = parser.parse_args()
    if given.quick:
        show(breast_cancer(quick=True))
        return
    stored = json.loads(RESULTS.read_text())["lines"] if RESULTS.exists() else []
    for name in given.data or DATA:
        lines = DATA[name]()
        show(lines)
        stored = [line for line in stored if line["data"] != name] + lines
    RESULTS.write_text(json.dumps({"l1_ratio": RATIO, "lines": stored}, indent=1) + "\n")


if __name__ == "__main__":
    main()
