"""Compiles the inner loops (src/zomirror/_kernels.c) when the package is built or installed.

They are optional: without a C compiler and Python's headers, or with ZOMIRROR_KERNELS=0, the package is built without
them, works in numpy alone and gives the same numbers.
"""

from __future__ import annotations

import os
import platform
import shlex
import shutil
import subprocess
import sysconfig
import tempfile
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

SOURCE, LIBRARY = "src/zomirror/_kernels.c", "_kernels.abi3.so"
# Without these two the compiler would round differently from numpy, or not use vectors; neither changes a value.
FLAGS = ["-std=c11", "-O3", "-fPIC", "-ffp-contract=off", "-fno-trapping-math", "-fno-math-errno"]


class CustomBuildHook(BuildHookInterface):  # type: ignore[misc,type-arg]
    """What hatchling calls before it builds."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Beside the source for an editable installation, into the wheel otherwise."""
        if self.target_name != "wheel" or not wanted():
            return
        editable = version == "editable"
        self.scratch = None if editable else tempfile.mkdtemp(prefix="zomirror-kernels-")
        library = Path(self.scratch or Path(self.root, SOURCE).parent, LIBRARY)
        if said := compiled(Path(self.root, SOURCE), library):
            self.app.display_warning(f"zomirror is built without its compiled loops, which are optional: {said}")
            return
        if not editable:
            build_data["force_include"][str(library)] = f"zomirror/{LIBRARY}"
            build_data["pure_python"] = False
            build_data["tag"] = f"cp311-abi3-{sysconfig.get_platform().replace('-', '_').replace('.', '_')}"

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        """The wheel has its copy."""
        if scratch := getattr(self, "scratch", None):
            shutil.rmtree(scratch, ignore_errors=True)


def wanted() -> bool:
    """Not on Pythons without the stable interface, nor where the environment says no."""
    stable = platform.python_implementation() == "CPython" and not sysconfig.get_config_var("Py_GIL_DISABLED")
    return stable and os.name == "posix" and os.environ.get("ZOMIRROR_KERNELS") != "0"


def compiled(source: Path, library: Path) -> str:
    """Compile in place of what was there; why it failed, or nothing."""
    linker = shlex.split(sysconfig.get_config_var("LDSHARED") or "cc -shared")
    if chosen := os.environ.get("CC"):
        linker[:1] = shlex.split(chosen)
    fresh = library.with_name(f"{library.name}.{os.getpid()}")
    include = sysconfig.get_paths()["include"]
    command = [*linker, *FLAGS, f"-I{include}", str(source), "-o", str(fresh), "-lm"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603
    except OSError as error:
        return str(error)
    if done.returncode:
        fresh.unlink(missing_ok=True)
        return done.stderr.strip()[-500:]
    fresh.replace(library)  # a process that has the old one open keeps it
    return ""
