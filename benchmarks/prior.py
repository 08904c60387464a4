"""How many queries a guess of the gradient saves: the paper's explanations of digits, with a second LeNet as surrogate.

f is a loss of the bundled LeNet, and prior(x) the gradient of the same loss of another LeNet, trained here on the same
data from another seed for three epochs. Counted are the queries until F is within 2 % of the final F of ZO-AdaExpMD
(m = 200, T = 200), as in queries.py, whose digits are others: here the first of each class from position 5,000 on. A
vector of random numbers is the wrong guess.

    python benchmarks/prior.py --images 3     writes results/prior.json
    python benchmarks/prior.py --quick        two images, prints only
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any

os.environ["OMP_NUM_THREADS"] = os.environ["OPENBLAS_NUM_THREADS"] = "1"
sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import numpy as np
import torch
from benchmarks.kit.machine import machine, store
from benchmarks.queries import BUDGET, LOSSES, problem

import zomirror as zm
from zomirror import datasets, models
from zomirror.paper.training.lenet import PLAN, lenet
from zomirror.paper.training.loop import fit

torch.set_num_threads(1)
CASES = [(kind, loss) for kind in ("PN", "PP") for loss in ("hinge", "softplus")]
OWN_BUDGET, EPOCHS, SEED = 15_000, 3, 11


def surrogate() -> Any:
    """A LeNet of the same data."""
    plan = replace(PLAN, epochs=EPOCHS, lanes=1)
    with tempfile.TemporaryDirectory() as folder:
        network, history = fit(
            lenet, plan, datasets.mnist("train"), datasets.mnist("test"), seed=SEED, checkpoint=Path(folder) / "lenet"
        )
    print(f"the surrogate is right on {history[-1].probe:.1%} of 2,000 test digits", flush=True)
    return network.eval()


def guess(network: Any, x0: Any, kind: str, loss: str, label: int) -> Any:
    """The gradient of the loss of the network, a function of x."""

    def gradient(x: Any) -> Any:
        points = torch.tensor(np.asarray(x, np.float32), requires_grad=True)
        shown = points + torch.tensor(x0) if kind == "PN" else points
        scores = network(shown.reshape(1, 1, 28, 28))[0]
        others = torch.cat([scores[:label], scores[label + 1 :]]).max()
        margin = scores[label] - others if kind == "PN" else others - scores[label]
        # Of the hinge, the gradient of the margin even where it is 0: the guess must not vanish there.
        value = margin if loss == "hinge" else torch.nn.functional.softplus(margin)
        value.backward()
        return np.asarray(points.grad).astype(x.dtype)

    return gradient


def within(history: Any, target: float) -> int:
    """The queries until F was at most the target."""
    found = np.flatnonzero(history.fun <= target)
    return int(history.nfev[found[0]]) if found.size else OWN_BUDGET


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--images", type=int, default=3)
    parser.add_argument("--quick", action="store_true", help="two images, writes nothing")
    given = parser.parse_args()
    network, model, test = surrogate(), zm.as_classifier(models.path("lenet")), datasets.mnist("test")
    rows: list[dict[str, Any]] = []
    for k in range(2 if given.quick else given.images):
        i = int(np.flatnonzero(test.labels[5000:] == k % 10)[k // 10]) + 5000
        x0 = (test.images[i].astype(np.float32) / np.float32(255)).ravel()
        label = int(np.argmax(model(x0.reshape(1, 1, 28, 28))))
        for kind, loss in CASES:
            f, start, bounds = problem(model, x0, kind, LOSSES[loss]())
            how: dict[str, Any] = {"l1": 0.1, "l2": 0.1, "bounds": bounds, "rng": i}
            base = zm.minimize(f, start, budget=BUDGET, method=zm.methods.zo_ada_expmd(200), **how)
            row: dict[str, Any] = {"image": i, "kind": kind, "loss": loss}
            guesses = {"none": None, "surrogate": guess(network, x0, kind, loss, label)}
            guesses |= {"random": np.random.default_rng(i).standard_normal(784)}
            for name, prior in guesses.items():
                run = zm.minimize(f, start, budget=OWN_BUDGET, prior=prior, target=1.02 * base.fun, **how)
                row[name] = within(run.history, 1.02 * base.fun)
            rows.append(row)
            print(row, flush=True)
    table = []
    for kind, loss in CASES:
        case = [row for row in rows if (row["kind"], row["loss"]) == (kind, loss)]
        medians = {name: statistics.median(row[name] for row in case) for name in ("none", "surrogate", "random")}
        table.append({"kind": kind, "loss": loss} | medians)
        print(table[-1], flush=True)
    totals = {name: sum(row[name] for row in rows) for name in ("none", "surrogate", "random")}
    print("all queries:", totals)
    if not given.quick:
        store("prior", {"machine": machine(), "cases": table, "totals": totals, "rows": rows})


if __name__ == "__main__":
    main()
