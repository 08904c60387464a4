"""Build the sdist and, from it, the wheel; install the wheel in new environments and run smoke.py there.

    python packaging/wheel.py                      the base package for each Python that is found
    python packaging/wheel.py --extras sklearn,tables,images --python python3.12

Each environment gets the wheel from dist/ and its dependencies from the package index. The wheel is built from the
unpacked sdist, so a file that the sdist lacks is missed here. `--without-compiler` builds it with a compiler that
fails: the wheel of numpy alone, for systems without one of their own.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PYTHONS = ("python3.11", "python3.12", "python3.13", "python3.14")
TORCH = (ROOT / "requirements" / "torch.in").read_text(encoding="utf-8").split("\n")


def built(folder: Path, *, compiler: bool) -> Path:
    """The wheel, built from the sdist."""
    environment = os.environ if compiler else {**os.environ, "CC": "false"}
    command = [sys.executable, "-m", "build", "--no-isolation", "--outdir", str(folder), str(ROOT)]
    subprocess.run(command, check=True, env=environment, stdout=subprocess.DEVNULL)
    [wheel] = folder.glob("*.whl")
    print(f"built {wheel.name} from {next(folder.glob('*.tar.gz')).name}", flush=True)
    return wheel


def tried(wheel: Path, python: str, extras: list[str], folder: Path) -> None:
    """Install the wheel in a new environment of this Python, and run the checks there."""
    home = folder / f"env-{Path(python).name}"
    subprocess.run([python, "-m", "venv", "--clear", str(home)], check=True)
    pip = [str(home / "bin" / "python"), "-m", "pip", "install", "-qq", "--disable-pip-version-check"]
    if "torch" in extras:
        pinned = [line for line in TORCH if line.startswith("torch")]
        subprocess.run([*pip, *pinned], check=True)
    wanted = f"{wheel}[{','.join(extras)}]" if extras else str(wheel)
    subprocess.run([*pip, wanted], check=True)
    smoke = folder / "smoke.py"
    shutil.copy(ROOT / "packaging" / "smoke.py", smoke)
    subprocess.run([str(home / "bin" / "python"), str(smoke), *extras], check=True, cwd=folder)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--python", action="append", help="repeatable; default: each of 3.11 to 3.14 that is found")
    parser.add_argument("--extras", default="", help="separated by commas")
    parser.add_argument("--without-compiler", action="store_true")
    parser.add_argument("--out", type=Path, default=ROOT / "dist")
    given = parser.parse_args()
    pythons = given.python or [name for name in PYTHONS if _runs(name)]
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        wheel = built(folder, compiler=not given.without_compiler)
        for python in pythons:
            tried(wheel, python, [name for name in given.extras.split(",") if name], folder)
        given.out.mkdir(exist_ok=True)
        for file in (*folder.glob("*.whl"), *folder.glob("*.tar.gz")):
            shutil.copy(file, given.out)


def _runs(python: str) -> bool:
    path = shutil.which(python)
    return path is not None and subprocess.run([path, "--version"], check=False, capture_output=True).returncode == 0


if __name__ == "__main__":
    main()
