"""Describe the machine of a benchmark, and store its numbers."""

from __future__ import annotations

import json
import os
import platform
import re
from importlib import metadata
from pathlib import Path
from typing import Any

from zomirror.numerics import kernels

ROOT = Path(__file__).resolve().parent.parent.parent
RESULTS = ROOT / "benchmarks" / "results"


def machine() -> dict[str, Any]:
    """Processor, memory, versions and load of this machine."""
    return {
        "processor": _processor(),
        "cores": os.cpu_count(),
        "gigabytes": round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30, 1),
        "system": f"{platform.system()} {platform.machine()}",
        "python": platform.python_version(),
        "numpy": metadata.version("numpy"),
        "onnxruntime": metadata.version("onnxruntime"),
        "zomirror": metadata.version("zomirror"),
        "compiled_loops": kernels.found() is not None,
        "load_average": round(os.getloadavg()[0], 2),
    }


def store(name: str, document: dict[str, Any], *, flat: bool = False) -> Path:
    """Write results/<name>.json: the numbers, and the machine; `flat` writes each list of numbers on one line."""
    RESULTS.mkdir(exist_ok=True)
    path = RESULTS / f"{name}.json"
    text = json.dumps(document, indent=1)
    if flat:
        text = re.sub(r"\[[^][{}\"]*\]", lambda found: " ".join(found[0].split()), text)
    path.write_text(text + "\n")
    print(f"written: {path.relative_to(ROOT)}")
    return path


def _processor() -> str:
    """The processor's name from the kernel; `platform` has none on Linux."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.machine()
