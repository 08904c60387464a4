"""Kill runs with SIGKILL at random moments, resume them until they end, and compare with uninterrupted runs.

python benchmarks/chaos.py [--kills 100] [--quick] [--tasks explain minimize command] [--methods ...]
                           [--commands ...] [--output chaos.json]

Explanations are of the bundled MNIST digits on the bundled LeNet, minimisations of a sparse quadratic in 784
dimensions. The black box counts its rows in a file of its own, one line per call, and the ledger is compared with it.
Every third run has max_sent = budget, so it ends early, at a prefix of the whole run. Checked:

    the result is bit for bit that of the uninterrupted run, or a prefix of it if max_sent was reached first
    neither the rows counted by the black box nor the rows counted by the ledger exceed max_sent
    a kill loses at most one batch, and the ledger never counts fewer rows than the black box

The task `command` kills the processes of `zomirror explain`, `minimize` and `attack` with --run-dir: while they start,
while they search, and while they finish (from the first stored result on). Afterwards the same command ends with exit
code 0, and its files are those of the uninterrupted one.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import zomirror as zm
from zomirror import models
from zomirror.datasets import digits
from zomirror.runs import inspect

METHODS: dict[str, Callable[[], zm.methods.Method | None]] = {
    "zo_ada_expmd": lambda: zm.methods.zo_ada_expmd(50),
    "zo_expmd": lambda: zm.methods.zo_expmd(5.0, 50),
    "zo_psgd": lambda: zm.methods.zo_psgd(20.0, 50),
    "zo_ada_psgd": lambda: zm.methods.zo_ada_psgd(50),
    "zo_ao_expmd": lambda: zm.methods.zo_ao_expmd(50),
    "zo_exp_storm": lambda: zm.methods.zo_exp_storm(),
    "recommended": lambda: None,
}
BUDGET = 2_000
FIRST_BATCH = 51  # rows of the largest first batch
KILLS_OF_ONE_RUN = 5  # at most; then the run may finish, and the next one starts
COMMANDS = {
    "explain": "explain chaos_model:scores input.npy --kind both --budget 600 --seed {i} --quiet --out out",
    "minimize": "minimize chaos_model:values --dim 50 --bounds 0,1 --l1 0.05 --budget 2000 --seed {i} --out out/x.npy",
    "attack": "attack chaos_model:scores input.npy --budget 600 --seed {i} --quiet --out out",
}
PHASES = ("starting", "searching", "finishing")
MODEL = """
import os, time
import numpy as np

def counted(batch):
    with open("account", "a") as file:
        file.write(f"{len(batch)}\\n")
    time.sleep(0.001)
    return batch.reshape(len(batch), -1)

def scores(batch):
    flat = counted(batch)
    return 4 * np.stack([flat[:, :3].sum(1), 1 + flat[:, 1:4].sum(1), 2 * flat[:, 5] * flat[:, 7]], axis=1)

def values(points):
    return np.square(counted(points) - 0.25)[:, ::7].sum(axis=1)
"""
Ready = Callable[[], object]


class Counted:
    """The black box; it counts its rows in a file that survives a kill."""

    def __init__(self, fun: Callable[[Any], Any], path: Path | None) -> None:
        self.fun = fun
        self.fd = -1 if path is None else os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND)

    def __call__(self, batch: Any) -> Any:
        """Write down the rows, then answer."""
        if self.fd >= 0:
            os.write(self.fd, f"{len(batch)}\n".encode())
        return self.fun(batch)


def quadratic(i: int) -> Callable[[Any], Any]:
    """|x - c|^2 with a sparse c, slow enough to be killed while it works."""
    centre = np.where(np.arange(784) % 20 == i % 20, 1.0, 0.0)
    return lambda points: np.square(points - centre).sum(axis=1)


def work(ready: Ready, task: str, method: str, i: int, account: Path | None, **durable: Any) -> dict[str, Any]:
    """One run to its end; its result, with every digit."""
    if task == "explain":
        data, card = digits(), models.card("lenet")
        model = Counted(zm.onnx_classifier(models.path("lenet")), account)
        ready()
        x0 = (data.images[i % len(data.images)].astype(np.float32).reshape(1, 28, 28) / 255 - card.mean[0]) / card.std[
            0
        ]
        one = zm.explain(
            model,
            x0.astype(np.float32),
            kind=("PN", "PP")[i % 2],
            mean=card.mean,
            std=card.std,
            budget=BUDGET,
            method=METHODS[method](),
            rng=i,
            **durable,
        )
        h, x, numbers = one.history, one.x, [one.objective, one.margin, one.l1_norm, one.nnz, one.label]
        status, sent, used = one.status.name, one.sent, one.nfev
    else:
        fun = Counted(quadratic(i), account)
        ready()
        result = zm.minimize(
            fun, np.full(784, 0.5), l1=0.05, bounds=(0, 1), budget=BUDGET, method=METHODS[method](), rng=i, **durable
        )
        h, x, numbers = result.history, result.x, [result.fun, result.f, result.stationarity]
        status, sent, used = result.status.name, result.sent, result.nfev
    return {
        "x": x.tobytes().hex(),
        "numbers": np.array(numbers, np.float64).tobytes().hex(),
        "history": [h.fun.tobytes().hex(), h.nfev.tobytes().hex()],
        "status": status,
        "used": used,
        "sent": sent,
    }


def forked(action: Callable[[Ready], Any], kill_after: float | None = None) -> tuple[bool, Any, float]:
    """Run an action in a process of its own: (was it killed, what it returned, seconds since it was ready)."""
    reader, writer = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            os.close(reader)
            answer = json.dumps(action(lambda: os.write(writer, b" ")))
            with os.fdopen(writer, "w") as pipe:
                pipe.write(answer)
            os._exit(0)
        except BaseException as error:  # noqa: BLE001 - the parent shows it
            os.write(2, f"{error!r}\n".encode())
            os._exit(1)
    os.close(writer)
    os.read(reader, 1)
    started = time.monotonic()
    if kill_after is not None:
        time.sleep(kill_after)
        os.kill(pid, signal.SIGKILL)
    with os.fdopen(reader) as pipe:
        said = pipe.read()
    status = os.waitpid(pid, 0)[1]
    killed = os.WIFSIGNALED(status)
    if not killed and status:
        raise SystemExit("a run failed: see above")
    return killed, None if killed else json.loads(said), time.monotonic() - started


def one_run(root: Path, task: str, method: str, i: int, chance: random.Random, kills: int) -> dict[str, int]:
    """Kill a run at random moments until it ends, and compare it with the uninterrupted one."""
    _, whole, seconds = forked(lambda ready: work(ready, task, method, i, None))
    path, account = root / "run", root / "account"
    cap = BUDGET if i % 3 == 2 else 3 * BUDGET
    durable = {"run_dir": path, "max_sent": cap}
    struck, lost, final = 0, 0, None
    while final is None:
        moment = chance.uniform(0, 0.6 * seconds) if struck < min(kills, KILLS_OF_ONE_RUN) else None
        killed, final, _ = forked(lambda ready: work(ready, task, method, i, account, **durable), moment)
        struck += killed
        asked = [int(line) for line in account.read_text().split()] if account.exists() else [0]
        check(sum(asked) <= cap, "the black box counted more rows than max_sent")
        if (path / "config.json").exists():
            info = inspect(path)
            check(sum(asked) <= info.sent <= cap, f"asked {sum(asked)}, ledger {info.sent}, cap {cap}")
            largest = max([*asked, FIRST_BATCH])  # the batch in flight may be the first, and not counted yet
            check(info.lost - lost <= killed * largest, f"one kill lost {info.lost - lost} rows")
            lost = info.lost
    check(info.lost <= struck * max([*asked, FIRST_BATCH]), f"{info.lost} rows lost in {struck} kills")
    check(info.sent == final["sent"] and info.used == final["used"], "the result and the ledger differ")
    if final["status"] == "MAX_SENT" or info.state != "finished":
        check(cap == BUDGET and struck > 0, "a run with room to spare did not end")
        for short, full in zip(final["history"], whole["history"], strict=True):
            check(full.startswith(short), "the shortened run is not a prefix of the whole one")
    else:
        same = all(final[key] == whole[key] for key in ("x", "numbers", "history", "status", "used"))
        check(same, f"{task} {method} {i}: another result after {struck} kills")
    for file in (*path.iterdir(), account):
        file.unlink(missing_ok=True)
    path.rmdir()
    return {
        "runs": 1,
        "kills": struck,
        "equal": int(info.state == "finished"),
        "prefix": int(info.state != "finished"),
        "rows_used": info.used,
        "rows_sent": info.sent,
        "rows_lost": info.lost,
        "rows_counted_but_never_asked": info.sent - sum(asked),
        "ledger_exact": int(info.sent == sum(asked)),
    }


def started(folder: Path, name: str, i: int) -> subprocess.Popen[str]:
    """The command as a process, in this folder."""
    words = [sys.executable, "-m", "zomirror", *COMMANDS[name].format(i=i).split(), "--run-dir", "run"]
    return subprocess.Popen(words, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


def reached(process: subprocess.Popen[str], folder: Path, phase: str) -> bool:
    """Wait until the command is in this phase; False if it ended before."""
    sign = {"starting": "chaos_model.py", "searching": "account", "finishing": "run/**/result.json"}[phase]
    while process.poll() is None:
        if next(folder.glob(sign), None) is not None:
            return True
        time.sleep(0.002)
    return False


def command_run(root: Path, name: str, i: int, chance: random.Random, kills: int) -> dict[str, int]:
    """Kill a command in each of its phases until it ends, and compare its files with those of an uninterrupted one."""
    folders, seconds = [root / "whole", root / "killed"], dict.fromkeys(PHASES, 0.0)
    for folder in folders:
        folder.mkdir()
        (folder / "chaos_model.py").write_text(MODEL)
        np.save(folder / "input.npy", np.full((4, 4), 0.3) + 0.01 * np.arange(16).reshape(4, 4))
    process = started(folders[0], name, i)
    marks = [time.monotonic()]
    for phase in PHASES[1:]:
        reached(process, folders[0], phase)
        marks.append(time.monotonic())
    finish(process, name)
    marks.append(time.monotonic())
    seconds = {phase: end - start for phase, start, end in zip(PHASES, marks, marks[1:], strict=False)}
    struck: list[str] = []
    count = min(kills, KILLS_OF_ONE_RUN)
    some = [*chance.sample(PHASES, min(count, len(PHASES))), *chance.choices(PHASES, k=max(0, count - len(PHASES)))]
    for phase in sorted(some, key=PHASES.index):  # in this order: what is finished searches no more
        if phase == "searching":
            (folders[1] / "account").unlink(missing_ok=True)  # it appears again with the first new query
        process = started(folders[1], name, i)
        there = reached(process, folders[1], phase)
        time.sleep(chance.uniform(0, 0.6 * seconds[phase]) if there else 0.0)
        process.kill()
        process.communicate()
        if process.returncode != -signal.SIGKILL:
            break  # it was faster
        struck.append(phase)
        info = inspect(folders[1] / "run") if (folders[1] / "run" / "command.json").exists() else None
        check(info is None or info.state != "damaged", f"{name} {i}: {info}")
    finish(started(folders[1], name, i), name)
    whole, killed = (contents(folder / "out") for folder in folders)
    check(whole.keys() == killed.keys(), f"{name} {i}: other files after {struck}: {sorted(killed)}")
    for file, data in whole.items():
        check(killed[file] == data, f"{name} {i}: {file} differs after kills while {struck}")
    info = inspect(folders[1] / "run")
    check(info.state == "finished", f"{name} {i}: {info}")
    counts = {phase: struck.count(phase) for phase in PHASES}
    for folder in folders:
        shutil.rmtree(folder)
    return {"runs": 1, "kills": len(struck), "equal": 1, "rows_sent": info.sent, "rows_lost": info.lost} | counts


def finish(process: subprocess.Popen[str], name: str) -> None:
    """Wait for the end of a command; its exit code must be 0."""
    said, _ = process.communicate()
    check(process.returncode == 0, f"{name} ended with exit code {process.returncode}:\n{said}")


def contents(folder: Path) -> dict[str, bytes]:
    """The files of a command; of an explanation all but the number of rows sent, which kills raise."""
    found = {}
    for file in folder.iterdir():
        data = file.read_bytes()
        if file.suffix == ".json":
            data = json.dumps({**json.loads(data), "sent": None}).encode()
        found[file.name] = data
    return found


def check(truth: bool, otherwise: str) -> None:  # noqa: FBT001
    """Stop at the first broken promise."""
    if not truth:
        raise SystemExit(f"BROKEN: {otherwise}")


def storm(root: Path, task: str, method: str, kills: int, seed: int) -> dict[str, int]:
    """Repeat runs (of a method, or of a command) until `kills` kills have hit a process."""
    chance = random.Random(seed)  # noqa: S311 - moments, not secrets
    total: dict[str, int] = {}
    i = 0
    while total.get("kills", 0) < kills:
        left = kills - total.get("kills", 0)
        if task == "command":
            found = command_run(root, method, i, chance, left)
        else:
            found = one_run(root, task, method, i, chance, left)
        total = {key: total.get(key, 0) + count for key, count in found.items()}
        i += 1
    return total


def main() -> None:
    """Kill runs of every task with every method."""
    parser = argparse.ArgumentParser(description="kill runs at random moments and compare them with uninterrupted ones")
    parser.add_argument("--kills", type=int, default=100, help="for each task and method")
    parser.add_argument("--quick", action="store_true", help="three kills each")
    tasks = ("explain", "minimize", "command")
    parser.add_argument("--tasks", nargs="+", choices=tasks, default=list(tasks))
    parser.add_argument("--commands", nargs="+", choices=tuple(COMMANDS), default=list(COMMANDS))
    parser.add_argument("--methods", nargs="+", choices=tuple(METHODS), default=list(METHODS))
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--output", type=Path, default=Path(__file__).parent / "results" / "chaos.json")
    given = parser.parse_args()
    kills = 3 if given.quick else given.kills
    with tempfile.TemporaryDirectory() as root:
        for task in given.tasks:
            for method in given.commands if task == "command" else given.methods:
                counts = storm(Path(root), task, method, kills, given.seed)
                sys.stdout.write(f"{task} {method}: {json.dumps(counts)}\n")
                sys.stdout.flush()
                if not given.quick or given.output.parent.name != "results":
                    keep(given.output, f"{task} {method}", counts, {"kills_each": kills, "seed": given.seed})


def keep(path: Path, name: str, counts: dict[str, int], setting: dict[str, int]) -> None:
    """Store one line at once; stored lines of other tasks and methods stay if their options are the same."""
    setting = {"budget": BUDGET} | setting
    path.parent.mkdir(parents=True, exist_ok=True)
    before = json.loads(path.read_text()) if path.exists() else {}
    alike = all(before.get(key) == value for key, value in setting.items())
    results = (before["results"] if alike else {}) | {name: counts}
    path.write_text(json.dumps(setting | {"results": results}, indent=1) + "\n")


if __name__ == "__main__":
    main()
