"""Tune a simulator with 1,000 parameters that runs in a process of its own, by ask and tell.

    python examples/tune_queue.py [--budget 8000] [--out queue.png]

The simulator (queue_network.py) is asked for one number, the mean time of an order. l1 is the price of capacity: what
comes out is a short list of stations to strengthen.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

import zomirror as zm

STATIONS = 1_000
L1 = 0.012
"""The price of one unit of capacity, in units of time."""


def tune(budget: int, orders: int = 2_000, seed: int = 1) -> tuple[zm.Result, float]:
    """The result, and the mean time of the network as it is."""
    command = [sys.executable, str(Path(__file__).with_name("queue_network.py")), str(seed), str(orders)]
    # Queues have kinks everywhere: larger batches and a wider look than the default gain another per cent or two.
    method = zm.zo_group_expmd(batch_size=50, floor=L1, radius=0.02, noise=0)
    opt = zm.Optimizer(np.zeros(STATIONS), l1=L1, bounds=(0, 1), method=method, rng=0, returns="best")
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0) as simulator:  # noqa: S603
        before = ask(simulator, opt.x)
        while opt.nfev + len(opt.query) <= budget:
            opt.tell([ask(simulator, point) for point in opt.ask()])
        simulator.stdin.close()
    return opt.result, before


def ask(simulator: subprocess.Popen, point: np.ndarray) -> float:
    """The mean time for one setting."""
    simulator.stdin.write(np.ascontiguousarray(point, np.float64).tobytes())
    return float(simulator.stdout.readline())


def draw(result: zm.Result, before: float, path: Path) -> None:
    figure = Figure(figsize=(9, 3.2), layout="constrained")
    left, right = figure.subplots(1, 2, width_ratios=(1, 1.6))
    left.plot(result.history.nfev, result.history.f, color="#0072B2")
    left.axhline(before, color="0.6", linestyle=":", label="the network as it is")
    left.set(xlabel="queries", ylabel="mean time of an order", ylim=(0, None))
    left.legend(frameon=False)
    right.vlines(np.arange(STATIONS), 0, result.x, color="#D55E00", lw=1.5)
    for edge in range(200, STATIONS, 200):
        right.axvline(edge, color="0.85", lw=0.8, zorder=0)
    right.set(xlabel="station (a line between stages)", ylabel="extra capacity", xlim=(0, STATIONS), ylim=(0, None))
    figure.savefig(path, dpi=150)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--budget", type=int, default=8_000)
    parser.add_argument("--orders", type=int, default=2_000)
    parser.add_argument("--out", type=Path, default=Path("queue.png"))
    given = parser.parse_args()
    result, before = tune(given.budget, given.orders)
    used = [int(i) for i in np.argsort(-result.x) if result.x[i] > 0.05]
    print(f"mean time {before:.2f} -> {result.f:.2f}; {len(used)} of {STATIONS:,} stations; {result.nfev:,} queries")
    print("strengthen", ", ".join(f"{i} (by {3 * result.x[i]:.1f} times)" for i in used[:12]))
    draw(result, before, given.out)


if __name__ == "__main__":
    main()
