"""A system without the parts of POSIX that Windows lacks: what works there, and what is refused in a sentence."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

WITHOUT_POSIX = """
import os, signal, sys
import multiprocessing, selectors, subprocess, tempfile  # of the standard library, which has its own ways there
for name in ("O_CLOEXEC", "O_DIRECTORY", "O_NOFOLLOW", "O_NONBLOCK", "fork", "geteuid", "getuid", "killpg", "pread",
             "pwrite", "pidfd_open", "register_at_fork", "sched_getaffinity", "setsid"):
    if hasattr(os, name):
        delattr(os, name)
for name in ("SIGALRM", "SIGHUP", "SIGKILL", "pidfd_send_signal", "pthread_kill", "pthread_sigmask", "setitimer"):
    if hasattr(signal, name):
        delattr(signal, name)
for name in ("fcntl", "grp", "pwd", "resource", "termios"):
    sys.modules[name] = None
"""
WORK = """
import importlib, pkgutil
import numpy as np
import zomirror as zm

for module in pkgutil.walk_packages(zm.__path__, "zomirror."):
    other = ("__main__", "_kernels", "kserve_explainer")  # a command, the compiled loops, an extra
    if ".training" not in module.name and not module.name.endswith(other):
        importlib.import_module(module.name)

def scores(batch):
    total = batch.reshape(len(batch), -1).sum(axis=1)
    return np.stack([2 - total, total - 2], axis=1)

print(zm.minimize(lambda X: np.square(X - 1).sum(axis=1), np.zeros(5), budget=300, rng=0).fun < 0.01)
print(zm.explain(scores, np.zeros(6), budget=200).valid)
for call in (
    lambda: zm.minimize(lambda X: X.sum(axis=1), np.zeros(5), run_dir="run"),
    lambda: zm.explain(scores, np.zeros(6), run_dir="run"),
    lambda: zm.command_classifier(["echo"]),
):
    try:
        call()
    except zm.errors.ArgumentError as error:
        print(error)
"""


def test_without_posix_the_library_works_and_refuses_what_needs_it(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT_POSIX + WORK], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.stderr == ""
    lines = done.stdout.splitlines()
    assert lines[:2] == ["True", "True"]
    assert [line.split(",")[0] for line in lines[2:]] == [
        *["expected no run_dir"] * 2,
        "expected no program on this system",
    ]
    assert not list(tmp_path.iterdir())
