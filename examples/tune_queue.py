"""Tune a simulator with 1,000 parameters that runs in another process, by ask and tell.

    python examples/tune_queue.py [--budget 3000] [--out queue.png]

The simulator (queue_network.py) returns one number, the mean time of an order. l1 is the price of capacity, so the
result is a short list of stations to strengthen. If the simulator hangs, dies or prints anything but numbers, the run
ends with an error that quotes its last output.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

import zomirror as zm

STATIONS = 1_000
L1 = 0.012
"""The price of one unit of capacity, in units of time."""


def tune(command: list[str], budget: int) -> zm.Result:
    """Ask for points, run the program there, tell the values, until the next batch exceeds the budget."""
    opt = zm.Optimizer(np.zeros(STATIONS), l1=L1, bounds=(0, 1), rng=0)
    with zm.command_function(command, framing="lines") as simulator:
        while opt.nfev + len(opt.query) <= budget:
            opt.tell(simulator(opt.ask()))
    return opt.result


def draw(result: zm.Result, path: Path) -> None:
    figure = Figure(figsize=(9, 3.2), layout="constrained")
    left, right = figure.subplots(1, 2, width_ratios=(1, 1.6))
    left.plot(result.history.nfev, result.history.f, color="#0072B2")
    left.axhline(result.history.f[0], color="0.6", linestyle=":", label="the present network")
    left.set(xlabel="queries", ylabel="mean time of an order", ylim=(0, None))
    left.legend(frameon=False)
    right.vlines(np.arange(STATIONS), 0, result.x, color="#D55E00", lw=1.5)
    for edge in range(200, STATIONS, 200):
        right.axvline(edge, color="0.85", lw=0.8, zorder=0)
    right.set(xlabel="station (a line between stages)", ylabel="extra capacity", xlim=(0, STATIONS), ylim=(0, None))
    figure.savefig(path, dpi=150)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--budget", type=int, default=3_000)
    parser.add_argument("--orders", type=int, default=2_000)
    parser.add_argument("--out", type=Path, default=Path("queue.png"))
    given = parser.parse_args()
    seed, simulator = 1, Path(__file__).with_name("queue_network.py")
    result = tune([sys.executable, str(simulator), str(seed), str(given.orders)], given.budget)
    used = [int(i) for i in np.argsort(-result.x) if result.x[i] > 0.05]
    before = result.history.f[0]  # the first queried point is the present network
    print(f"mean time {before:.2f} -> {result.f:.2f}; {len(used)} of {STATIONS:,} stations; {result.nfev:,} queries")
    print("strengthen", ", ".join(f"{i} (by {3 * result.x[i]:.1f} times)" for i in used[:12]))
    draw(result, given.out)


if __name__ == "__main__":
    main()
