"""A study over a Dask cluster, run as a program on one of the hosts: explanations into a file, one JSON each."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import zomirror as zm
from tests.support.units import INPUTS, OPTIONS, Model
from zomirror.parallel import Workers


def main() -> None:
    """Explain the inputs of the tests: DIRECTORY DASK_ADDRESS PAUSE SILENCE."""
    folder, address, pause, silence = Path(sys.argv[1]), sys.argv[2], float(sys.argv[3]), float(sys.argv[4])
    found = zm.explain_many(
        Model(folder / "log", pause=pause),
        INPUTS,
        workers=Workers(address, silence=silence),
        run_dir=folder / "run",
        max_sent=600,
        progress=False,
        **OPTIONS,
    )
    (folder / "found.json").write_text(json.dumps([one.to_json() for one in found]))


if __name__ == "__main__":
    main()
