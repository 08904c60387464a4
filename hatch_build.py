"""Compiles the inner loops (src/zomirror/numerics/_kernels.c) when the package is built or installed.

They are optional: without a C compiler and Python's headers, or with ZOMIRROR_KERNELS=0, the package is built without
them, works in numpy alone and gives the same numbers.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import platform
import shlex
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface
from packaging import tags

SOURCE, LIBRARY = "src/zomirror/numerics/_kernels.c", "_kernels.abi3.so"
# No flag changes a value: fused or reordered operations would, and are forbidden; the last two only allow vectors.
FLAGS = ["-std=c11", "-O3", "-fPIC", "-fno-fast-math", "-ffp-contract=off", "-fno-trapping-math", "-fno-math-errno"]


class CustomBuildHook(BuildHookInterface):  # type: ignore[misc,type-arg]
    """What hatchling calls before it builds."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Beside the source for an editable installation, into the wheel otherwise."""
        if self.target_name != "wheel":
            return
        source = Path(self.root, SOURCE)
        if version == "editable":
            library = source.with_name(LIBRARY)
        else:
            scratch = tempfile.mkdtemp(prefix="zomirror-kernels-")
            atexit.register(shutil.rmtree, scratch, ignore_errors=True)
            library = Path(scratch, LIBRARY)
        if why_not := unwanted() or failed(source, library):
            with contextlib.suppress(OSError):
                library.unlink(missing_ok=True)  # one that was compiled before is not that of this source
            self.app.display_warning(f"zomirror is built without its compiled loops, which are optional: {why_not}")
        elif version != "editable":
            build_data["force_include"][str(library)] = f"zomirror/numerics/{LIBRARY}"
            build_data["pure_python"] = False
            if sys.platform == "linux":
                build_data["tag"] = f"cp311-abi3-{_platform()}"
            else:  # platforms have their own ways to be called, which hatchling knows
                build_data["infer_tag"] = True


def unwanted() -> str:
    """Why they are not to be compiled, or nothing."""
    if os.environ.get("ZOMIRROR_KERNELS") == "0":
        return "ZOMIRROR_KERNELS is 0"
    if platform.python_implementation() != "CPython" or sysconfig.get_config_var("Py_GIL_DISABLED"):
        return "this Python has no stable binary interface"
    return "" if os.name == "posix" else f"not on {os.name}"


def failed(source: Path, library: Path) -> str:
    """Compile in place of what was there; why that failed, or nothing."""
    fresh = library.with_name(f"{library.name}.{os.getpid()}")
    try:
        linker = shlex.split(sysconfig.get_config_var("LDSHARED") or "cc -shared")
        if chosen := os.environ.get("CC"):
            linker[:1] = shlex.split(chosen)
        command = [*linker, *FLAGS, f"-I{sysconfig.get_paths()['include']}", str(source), "-o", str(fresh), "-lm"]
        done = subprocess.run(command, capture_output=True, check=False)  # noqa: S603
        if done.returncode == 0:
            fresh.replace(library)  # a process that has the old one open keeps it
            return ""
        fresh.unlink(missing_ok=True)
    except (OSError, ValueError) as error:
        return str(error)
    return done.stderr.decode(errors="replace").strip()[-500:] or f"the compiler ended with {done.returncode}"


def _platform() -> str:
    """What pip calls this machine, without the promise of an old libc."""
    return next(tag.platform for tag in tags.sys_tags() if tag.platform[:6] == "linux_")
