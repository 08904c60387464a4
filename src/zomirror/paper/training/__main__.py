"""`python -m zomirror.training lenet|resnet20`: the same as `zomirror train`, without the command line."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from zomirror.errors import ZomirrorError
from zomirror.paper.training import NAMES, train


def main() -> int:
    """Parse, train, and say where the files are."""
    parser = argparse.ArgumentParser(prog="python -m zomirror.training", description=train.__doc__)
    parser.add_argument("name", choices=NAMES)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--epochs", type=int, default=None)
    parser.add_argument("--output", type=Path, default=None)
    given = parser.parse_args()
    try:
        trained = train(
            given.name,
            seed=given.seed,
            epochs=given.epochs,
            output=given.output,
            report=lambda line: print(line, file=sys.stderr, flush=True),  # noqa: T201
        )
    except ZomirrorError as error:
        sys.stderr.write(f"{error}\n")
        return 1
    sys.stdout.write(f"{trained.onnx}: {trained.accuracy:.2%} of the test set\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
