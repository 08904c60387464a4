"""Simulate a queueing network, without zomirror: orders pass five stages of 200 stations, first come, first served.

Reads settings from standard input, 1,000 numbers per line, and prints for each the mean time that an order spends in
the network. Number i is the extra capacity of station i; 1 adds three times its present capacity. All zeros is the
present network, in which eight stations are too slow for their load. The same orders arrive every time.

    python queue_network.py SEED ORDERS
"""

from __future__ import annotations

import sys

import numpy as np

STAGES, STATIONS = 5, 200
BOTTLENECKS = 8


class Network:
    """Orders with their routes and service times, all drawn once."""

    def __init__(self, seed: int, orders: int) -> None:
        rng = np.random.default_rng(seed)
        self.arrivals = np.cumsum(rng.exponential(1.0 / STATIONS, orders))
        self.routes = rng.integers(STATIONS, size=(STAGES, orders)) + STATIONS * np.arange(STAGES)[:, None]
        self.work = rng.exponential(size=(STAGES, orders))
        self.load = rng.uniform(0.1, 0.2, STAGES * STATIONS)
        self.slow = np.sort(rng.choice(STAGES * STATIONS, BOTTLENECKS, replace=False))
        self.load[self.slow] = rng.uniform(2.0, 4.0, BOTTLENECKS)

    def mean_time(self, extra: np.ndarray) -> float:
        """The mean time from arrival to the end of the last stage."""
        speed = (1.0 + 3.0 * np.maximum(extra, -0.3)) / self.load
        at = self.arrivals
        far = 10.0 * (at[-1] + self.work.sum())
        for stage, route in enumerate(self.routes):
            order = np.lexsort((at, route))
            busy = (self.work[stage] / speed[route])[order]
            # The stations' queues follow one another on one time axis, so one cumulative sum serves them all in order.
            begin = at[order] + far * (route[order] - stage * STATIONS)
            worked = np.cumsum(busy)
            done = worked + np.maximum.accumulate(begin - worked + busy)
            at = np.empty_like(at)
            at[order] = done - far * (route[order] - stage * STATIONS)
        return float(np.mean(at - self.arrivals))


def main() -> None:
    network = Network(int(sys.argv[1]), int(sys.argv[2]))
    for setting in sys.stdin:
        print(network.mean_time(np.array(setting.split(), dtype=float)), flush=True)


if __name__ == "__main__":
    main()
