"""The environment of the peers: other people's optimisers, in a virtual environment of their own.

Nothing of theirs is needed by zomirror, so they are not among its requirements. `python()` is the interpreter of that
environment, made at the first call in `.venv-peers` of the checkout; ZOMIRROR_PEERS names another environment that
has the packages already. `run(script, ...)` runs a file there and gives back the JSON that it prints last.

    python benchmarks/kit/peer_env.py        makes the environment and says where it is
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

PACKAGES = ("numpy==2.4.6", "scipy==1.17.1", "cma==4.5.0", "nevergrad==1.0.12", "nlopt==2.11.0")
ROOT = Path(__file__).resolve().parent.parent.parent
FOLDER = ROOT / ".venv-peers"


def python() -> Path:
    """The interpreter that has the peers; the environment is made when there is none."""
    folder = Path(os.environ.get("ZOMIRROR_PEERS") or FOLDER)
    found = folder / "bin" / "python"
    stamp = FOLDER / ".installed"
    if folder == FOLDER and (not stamp.is_file() or stamp.read_text() != "\n".join(PACKAGES)):
        subprocess.run([sys.executable, "-m", "venv", "--clear", str(FOLDER)], check=True)
        subprocess.run([str(found), "-m", "pip", "install", "-qq", *PACKAGES], check=True)
        stamp.write_text("\n".join(PACKAGES))
    if not found.exists():
        raise SystemExit(f"expected ZOMIRROR_PEERS to name a virtual environment, got {folder}: it has no bin/python")
    return found


def run(script: Path, *arguments: str, timeout: float = 600) -> Any:
    """What `script` prints on its last line, run with the peers on one thread; its errors are ours."""
    one = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    done = subprocess.run(
        [str(python()), str(script), *arguments],
        check=True,
        stdout=subprocess.PIPE,
        text=True,
        timeout=timeout,
        env=os.environ | one,
    )
    return json.loads(done.stdout.splitlines()[-1])


if __name__ == "__main__":
    print(python())
