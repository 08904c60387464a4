"""Measure what workers, pipes and HTTP cost between a search and its model, in rows per second.

    python benchmarks/workers.py [--quick] [--model RESNET20.onnx]

- Explanations of bundled digits by one process and by two loky workers, including their start; the bits are compared.
  The turn in which other processes used the least of the machine counts.
- The time of an empty unit to a worker and back.
- Rows per second of the LeNet in this process, as a program over pipes, and from a real KServe server on this machine
  (if .venv-kserve is there), in batches of the size of an iteration.
- Rows per second of a larger network in this process (--model), from which the time of a large study follows.

Writes results/workers.json.
"""

from __future__ import annotations

import argparse
import os
import resource
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any

os.environ["OMP_NUM_THREADS"] = os.environ["OPENBLAS_NUM_THREADS"] = "1"
sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import numpy as np
from benchmarks.kit.machine import ROOT, machine, store

import zomirror as zm
from zomirror import models
from zomirror.datasets import digits
from zomirror.parallel import Team

AIM = 1.7
QUIET = 0.1
ROWS = 201
LENET = models.path("lenet")
SERVER = """
import io, sys
from types import SimpleNamespace
import numpy as np
import zomirror as zm
model = zm.onnx_classifier(sys.argv[1])
stdin = SimpleNamespace(read=sys.stdin.buffer.read)
while sys.stdin.buffer.peek(1):
    answer = io.BytesIO()
    np.save(answer, model(np.lib.format.read_array(stdin)))
    sys.stdout.buffer.write(answer.getvalue())
    sys.stdout.buffer.flush()
"""


def timed(call: Callable[[], Any]) -> tuple[float, Any]:
    began = time.perf_counter()
    found = call()
    return time.perf_counter() - began, found


def processor() -> tuple[float, float]:
    """Processor seconds of this process and its children, and of the whole machine."""
    own = sum(sum(resource.getrusage(who)[:2]) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    fields = [int(word) for word in Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:]]
    busy = sum(fields[:3]) + sum(fields[5:8])  # user, nice, system, interrupts, steal
    return own, busy / os.sysconf("SC_CLK_TCK")


def wait_for_quiet(most: float = 60.0) -> None:
    """Wait, for at most a minute, until other processes are idle for two seconds."""
    until = time.monotonic() + most
    while time.monotonic() < until:
        own, busy = processor()
        time.sleep(2.0)
        own_after, busy_after = processor()
        if busy_after - busy - own_after + own < QUIET * 2.0 * (os.cpu_count() or 1):
            return


def explanations(count: int, budget: int, rounds: int) -> dict[str, Any]:
    """The same digits by one process and by two, repeated until undisturbed; the least disturbed turn counts."""
    images = digits().images[:count].reshape(-1, 1, 28, 28).astype(np.float32) / 255
    model = zm.onnx_classifier(LENET)

    def explained(workers: int) -> list[zm.Explanation]:
        return zm.explain_many(model, images, kind="PN", budget=budget, rng=0, workers=workers)

    turns: list[dict[str, float]] = []
    while len(turns) < rounds and not (turns and turns[-1]["others"] < QUIET):
        wait_for_quiet()
        own, busy = processor()
        one, alone = timed(lambda: explained(1))
        between, _ = processor()
        two, shared = timed(lambda: explained(2))
        own_after, busy_after = processor()
        others = (busy_after - busy - own_after + own) / ((one + two) * (os.cpu_count() or 1))
        turn = {"seconds_1": one, "seconds_2": two, "speedup": one / two, "others": others}
        turns.append(turn | {"processor_1": between - own, "processor_2": own_after - between})
        print(f"  one process {one:.1f} s, two workers {two:.1f} s: {one / two:.2f}; other processes used {others:.0%}")
    best = min(turns, key=lambda turn: turn["others"])
    return best | {
        "explanations": len(alone),
        "queries": sum(e.nfev for e in alone),
        "same_bits": [e.to_json() for e in alone] == [e.to_json() for e in shared],
        "turns": turns,
    }


def nothing(task: int) -> int:
    return task


def units(rounds: int) -> dict[str, float]:
    """Seconds to start two workers, and for one empty unit."""
    with Team(2) as team:
        start, _ = timed(lambda: list(team.spread(nothing, range(2))))
        each, _ = timed(lambda: list(team.spread(nothing, range(rounds))))
    return {"start_of_two": start, "unit": each / rounds}


def rate(model: Callable[[Any], Any], shape: tuple[int, ...], seconds: float, rows: int = ROWS) -> float:
    """Rows per second in batches of one iteration; the best of several measurements, as the machine is shared."""
    batch = np.random.default_rng(0).random((rows, *shape), dtype=np.float32)
    model(batch)
    best, until = 0.0, time.perf_counter() + seconds
    while time.perf_counter() < until:
        took, _ = timed(lambda: [model(batch) for _ in range(3)])
        best = max(best, 3 * rows / took)
    return best


@contextmanager
def kserve() -> Any:
    """The address of a KServe server with the LeNet."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    with tempfile.TemporaryDirectory() as directory:
        args = [
            ROOT / ".venv-kserve/bin/python",
            ROOT / "tests/support/kserve_server.py",
            LENET,
            str(port),
            f"{directory}/n",
        ]
        process = subprocess.Popen([str(a) for a in args], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            for _ in range(300):
                with socket.socket() as s:
                    if s.connect_ex(("127.0.0.1", port)) == 0:
                        break
                time.sleep(0.2)
            yield f"http://127.0.0.1:{port}"
        finally:
            process.terminate()
            process.wait()


def rates(seconds: float) -> dict[str, float]:
    """Rows per second of the LeNet in this process, over pipes and over HTTP."""
    shape = (1, 28, 28)
    found = {"in this process": rate(zm.onnx_classifier(LENET), shape, seconds)}
    with zm.command_classifier([sys.executable, "-c", SERVER, str(LENET)]) as program:
        found["a program, npy over pipes"] = rate(program, shape, seconds)
    there = (ROOT / ".venv-kserve/bin/python").exists()
    with kserve() if there else nullcontext() as url:
        for encoding in ("binary", "json") if there else ():
            model = zm.http_classifier(url, model="lenet", encoding=encoding)  # type: ignore[arg-type]
            found[f"KServe, {encoding}"] = rate(model, shape, seconds)
            found[f"KServe, {encoding}, 16 rows a batch"] = rate(model, shape, seconds, 16)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--model", type=Path)
    given = parser.parse_args()
    count, budget, rounds, seconds = (4, 1_000, 1, 0.5) if given.quick else (20, 10_000, 4, 3.0)
    document: dict[str, Any] = {"machine": machine()}
    document["explanations"] = found = explanations(count, budget, rounds)
    print(f"{found['explanations']} explanations, {found['queries']:,} queries, same bits: {found['same_bits']}")
    print(f"two workers are {found['speedup']:.2f} times as fast as one process (aim {AIM})")
    document["units"] = each = units(50 if given.quick else 500)
    print(f"two workers start in {each['start_of_two']:.2f} s; a unit costs {1e3 * each['unit']:.2f} ms")
    document["rows_per_second"] = all_rates = rates(seconds)
    near = all_rates["in this process"]
    for name, value in all_rates.items():
        print(f"LeNet, {name}: {value:,.0f} rows/s, {value / near:.2f} of in-process")
    if given.model is not None:
        larger = rate(zm.onnx_classifier(given.model), (3, 32, 32), 3 * seconds)
        document["resnet20_rows_per_second"] = larger
        print(f"{given.model.stem}: {larger:,.0f} rows/s on one core")
    if not given.quick:
        store("workers", document)


if __name__ == "__main__":
    main()
