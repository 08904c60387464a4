"""Attack the bundled network on bundled digits: change few pixels so that it sees another digit.

python examples/attack_digits.py [--digits 6] [--out attack_digits.png]
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np

import zomirror as zm
from zomirror import datasets, models
from zomirror.drawing.plot import plot_grid


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--digits", type=int, default=6)
    parser.add_argument("--budget", type=int, default=10_000)
    parser.add_argument("--out", type=Path, default=Path("attack_digits.png"))
    given = parser.parse_args()
    images = datasets.digits().images[: 2 * given.digits : 2, None].astype(np.float32) / 255
    attacks = zm.attack_many(models.path("lenet"), images, budget=given.budget, rng=0)
    for one in attacks:
        print(f"{one.words()}, l1 {one.l1_norm:.1f}, {one.nfev:,} queries")
    plot_grid(attacks, title="Sparse attacks on LeNet").savefig(given.out, dpi=150)


if __name__ == "__main__":
    main()
