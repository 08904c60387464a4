"""A toy algorithm on a durable run, in processes that can be killed for real.

The black box counts its rows in a file of its own, so that what the ledger says can be held against what was asked.
Run as a program it forks one process per fault and writes what it saw as JSON.
"""

from __future__ import annotations

import contextlib
import json
import os
import random
import shutil
import signal
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from zomirror.errors import BudgetError
from zomirror.runs.directory import RunDirectory

ROWS = 5
BUDGET = 21  # four batches of five and the last measurement
SETTINGS = {"l1": 0.5, "method": {"batch": ROWS}, "budget": BUDGET}


def black_box(rows: NDArray[np.float64], calls: Path, delay: float) -> NDArray[np.float64]:
    fd = os.open(calls, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    os.write(fd, b"." * len(rows))
    os.close(fd)
    time.sleep(delay)
    return np.asarray(np.cos(rows).sum(1) + (rows**2).sum(1))


def descend(path: Path, *, budget: int = BUDGET, max_sent: int = 1_000_000, delay: float = 0.0, every: int = 2) -> str:
    """Run or resume to the end, and return the state in hexadecimal; 'prefix ...' if max_sent came first."""
    calls = path.with_name(path.name + ".calls")
    settings = {**SETTINGS, "budget": budget}
    with RunDirectory.open(path, settings, arrays={"x0": np.ones(3)}, max_sent=max_sent) as run:
        if (stored := run.result()) is not None:
            return stored.arrays["x"].tobytes().hex()
        state = run.restore()
        x, step = (state["x"], int(state["step"])) if state else (np.ones(3), 0)
        try:
            while run.position + ROWS < budget:
                rows = x + np.sin(np.arange(ROWS * 3.0).reshape(ROWS, 3) + step)
                values = run.take(ROWS)
                if len(values) < ROWS:
                    run.begin(ROWS)
                    values = black_box(rows, calls, delay)
                    run.values(values)
                x = x - 0.01 * (values[:, None] * (rows - x)).mean(0)
                step += 1
                if step % every == 0:
                    run.checkpoint({"x": x, "step": step})
            last = run.aside(1)
            if last is None:
                run.begin(1, aside=True)
                last = black_box(x[None], calls, delay)
                run.values(last)
        except BudgetError:
            return "prefix " + x.tobytes().hex()
        x = np.append(x, last)
        run.finish({"fun": float(last[0])}, {"x": x})
    return x.tobytes().hex()


def count_calls(path: Path) -> int:
    calls = path.with_name(path.name + ".calls")
    return calls.stat().st_size if calls.exists() else 0


def ledger(path: Path) -> dict[str, Any]:
    from zomirror.runs import inspect

    info = inspect(path)
    return {"state": info.state, "used": info.used, "sent": info.sent, "lost": info.lost, "damage": info.damage}


def die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


class Fault:
    """Kill this process at its k-th call of the operating system: before it, after it, or half way through."""

    NAMES = ("open", "pwrite", "fdatasync", "fsync", "rename", "ftruncate", "unlink", "mkdir", "close")

    def __init__(self, at: int, mode: str) -> None:
        self.at = at
        self.mode = mode
        self.calls = 0
        self.trace: list[str] = []

    def arm(self) -> None:
        import zomirror.runs.journal as journal

        for name in self.NAMES:
            setattr(os, name, self.wrap(name, getattr(os, name)))
        journal._sync = os.fdatasync
        # windows of two batches whatever the clock says, so that the k-th call is the same call every time
        setattr(journal.Pace, "interval", 10.0)  # noqa: B010
        setattr(journal.Journal, "_next_window", lambda self, rows: 2)  # noqa: B010

    def wrap(self, name: str, real: Any) -> Any:
        def call(*args: Any, **kwargs: Any) -> Any:
            self.calls += 1
            self.trace.append(name)
            if self.calls == self.at:
                if self.mode == "half" and name == "pwrite":
                    fd, data, offset = args
                    real(fd, memoryview(data)[: len(data) // 64 * 32], offset)  # whole heads, torn payloads
                elif self.mode == "after":
                    with contextlib.suppress(OSError):
                        real(*args, **kwargs)
                die()
            return real(*args, **kwargs)

        return call


def forked(action: Any, *args: Any, **kwargs: Any) -> tuple[int, str]:
    """Run in a forked process; its exit status and what it returned."""
    reader, writer = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            os.close(reader)
            with os.fdopen(writer, "w") as pipe:
                pipe.write(action(*args, **kwargs))
            os._exit(0)
        except BaseException as error:  # noqa: BLE001 - the parent reads it
            os.write(2, repr(error).encode()[:2000])
            os._exit(1)
    os.close(writer)
    with os.fdopen(reader) as pipe:
        said = pipe.read()
    return os.waitpid(pid, 0)[1], said


def faulty(path: Path, fault: Fault, **options: Any) -> str:
    fault.arm()
    said = descend(path, **options)
    return json.dumps([said, fault.trace])


def sweep(root: Path) -> dict[str, Any]:
    """A kill at every call of the operating system, in every mode, each followed by a resume."""
    _, said = forked(faulty, root / "whole", Fault(0, "before"))
    whole, trace = json.loads(said)
    seen: list[Any] = []
    for at in range(1, len(trace) + 1):
        for mode in ("before", "after", "half") if trace[at - 1] == "pwrite" else ("before", "after"):
            path = root / "run"
            status, _ = forked(faulty, path, Fault(at, mode))
            before = ledger(path) if (path / "config.json").exists() else None
            asked = count_calls(path)
            again, final = forked(descend, path)
            seen.append(
                {
                    "at": at,
                    "mode": mode,
                    "call": trace[at - 1],
                    "killed": os.WIFSIGNALED(status),
                    "before": before,
                    "asked_before": asked,
                    "resumed": again,
                    "final": final,
                    "asked": count_calls(path),
                    "after": ledger(path),
                }
            )
            shutil.rmtree(path)
            (root / "run.calls").unlink(missing_ok=True)
    return {"whole": whole, "seen": seen}


def storm(root: Path, *, kills: int, seed: int, max_sent: int, budget: int) -> dict[str, Any]:
    """Kills at random moments of one run until `kills` of them have struck, then the end."""
    chance = random.Random(seed)  # noqa: S311 - moments, not secrets
    _, whole = forked(descend, root / "whole", budget=budget, every=25)
    path = root / "run"
    struck = 0
    while struck < kills:
        pid = os.fork()
        if pid == 0:
            try:
                descend(path, delay=0.002, max_sent=max_sent, budget=budget, every=25)
                os._exit(0)
            except BaseException as error:  # noqa: BLE001
                os.write(2, repr(error).encode()[:2000])
                os._exit(1)
        time.sleep(chance.uniform(0.0, 0.12))
        os.kill(pid, signal.SIGKILL)
        status = os.waitpid(pid, 0)[1]
        if not os.WIFSIGNALED(status):
            break
        struck += 1
    middle = ledger(path)
    status, final = forked(descend, path, max_sent=max_sent, budget=budget, every=25)
    return {
        "whole": whole,
        "final": final,
        "status": status,
        "struck": struck,
        "middle": middle,
        "after": ledger(path),
        "asked": count_calls(path),
    }


def main() -> None:
    what, root, options = sys.argv[1], Path(sys.argv[2]), json.loads(sys.argv[3])
    answer = sweep(root) if what == "sweep" else storm(root, **options)
    sys.stdout.write(json.dumps(answer))


if __name__ == "__main__":
    main()
