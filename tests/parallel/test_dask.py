"""A real Dask cluster of two worker processes: the serial results bit for bit, though one is killed and one stopped."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import zomirror as zm
from tests.support.units import INPUTS, OPTIONS, Model, Struck, bits, lines
from zomirror.errors import ArgumentTypeError, WorkerError
from zomirror.paper import images as pictures
from zomirror.paper.grid import grid
from zomirror.paper.runner import run
from zomirror.paper.settings import Algorithm
from zomirror.paper.store import Store
from zomirror.parallel import Workers, spread

SILENCE = 4.0

# The workers here are killed and stopped. What Dask's own threads and finalizers then raise is not an error of a test.
pytestmark = [
    pytest.mark.filterwarnings(f"ignore::{warning}")
    for warning in ("pytest.PytestUnraisableExceptionWarning", "pytest.PytestUnhandledThreadExceptionWarning")
]


@pytest.fixture(scope="module")
def cluster() -> Iterator[Any]:
    import dask
    from distributed import Client, LocalCluster  # by the worker that runs this file, not by all that collect it

    local: dict[str, Any] = {"host": "127.0.0.1", "dashboard_address": "127.0.0.1:0", "silence_logs": 60}
    # 15 s after a worker was lost, this kind of cluster closes its nanny if a worker of this name is missing in that
    # moment, for instance because the next test has just killed it.
    with dask.config.set({"distributed.deploy.lost-worker-timeout": "1 hour"}):
        cluster = LocalCluster(n_workers=2, threads_per_worker=1, processes=True, **local)
        client = Client(cluster)
        yield client
        # Dask's own bookkeeping of workers that were killed and stopped now and then fails while it shuts down
        # (KeyError of an address that it has already forgotten). The tests are over by then: it is not theirs.
        for closing in (client, cluster):
            with contextlib.suppress(Exception, asyncio.CancelledError):
                closing.close(timeout=30)
    del client, cluster, closing
    gc.collect()  # what is finalized with an error is so under the filters of this file, not in the next one


@pytest.fixture
def client(cluster: Any) -> Any:
    """With both workers back, whatever the test before has done to them."""
    try:
        await_workers(cluster, seconds=40)
    except TimeoutError:  # now and then a nanny does not bring its worker back: another takes its place
        cluster.cluster.scale(len(cluster.cluster.worker_spec) + 1)
        await_workers(cluster, seconds=80)
    return cluster


def await_workers(client: Any, seconds: float) -> None:
    """Wait until two workers answer; a KeyError is Dask reading a worker that leaves in that moment: ask again."""
    end = time.monotonic() + seconds
    while True:
        with contextlib.suppress(KeyError):
            client.wait_for_workers(2, timeout=max(1.0, end - time.monotonic()))
            return
        if time.monotonic() > end:
            raise TimeoutError(f"two workers did not answer within {seconds:g} s")


def test_explanations_over_a_cluster_are_the_serial_ones(client: Any, tmp_path: Path) -> None:
    """By a client, by its executor, and by the address of the scheduler."""
    expected = bits(zm.explain_many(Model(tmp_path / "serial"), INPUTS, **OPTIONS))
    address = client.scheduler.address.replace("tcp", "dask")
    for i, workers in enumerate((client, client.get_executor(pure=False, retries=0), address)):
        model = Model(tmp_path / f"log-{i}")
        assert bits(zm.explain_many(model, INPUTS, workers=workers, **OPTIONS)) == expected
        assert sorted(lines(model.log)) == sorted(lines(tmp_path / "serial"))


def test_one_is_killed_and_one_is_stopped_and_no_query_is_spent_twice(client: Any, tmp_path: Path) -> None:
    expected = bits(zm.explain_many(Model(tmp_path / "serial"), INPUTS, **OPTIONS))
    model = Model(tmp_path / "log", (("SIGKILL", 200), ("SIGSTOP", 700)))
    # Longer than the four seconds that Dask's nanny gives the stopped one: until then it holds its journal.
    workers = Workers(client, silence=2 * SILENCE)
    found = zm.explain_many(model, INPUTS, workers=workers, run_dir=tmp_path / "run", max_sent=600, **OPTIONS)
    assert sorted(path.name for path in tmp_path.glob("struck-*")) == ["struck-SIGKILL-200", "struck-SIGSTOP-700"]
    assert bits(found) == expected
    assert Counter(lines(model.log)) == Counter(lines(tmp_path / "serial"))
    assert sum(one.sent for one in found) > sum(one.nfev for one in found)  # the ledger holds what was lost


def test_the_experiments_are_the_serial_ones_though_one_dies_and_one_is_stopped(client: Any, tmp_path: Path) -> None:
    lenet = pictures.network("mnist")
    algorithms = [Algorithm.named(name) for name in ("adaexpmd", "psgd-10", "recommended")]
    images = pictures.chosen("mnist", lenet, 1)
    tasks = grid("mnist", "printed", lenet, images, algorithms=algorithms, iterations=3)[:9]
    run(tasks, tmp_path / "serial")
    struck: list[int] = []

    def tell(done: int, _: int) -> None:
        if done in (3, 6):  # in the middle of what the others do
            # One that was killed may still be coming back: it does not answer.
            pid = next(pid for pid in client.run(os.getpid, on_error="ignore").values() if pid not in struck)
            os.kill(pid, signal.SIGKILL if done == 3 else signal.SIGSTOP)
            struck.append(pid)

    work = run(tasks, tmp_path / "cluster", workers=Workers(client, silence=3 * SILENCE), tell=tell)
    assert (work.computed, work.left, len(struck)) == (9, 0, 2)
    with contextlib.suppress(ProcessLookupError):  # nobody has ended it, if it had nothing to do when it was stopped
        os.kill(struck[1], signal.SIGKILL)
    serial, cluster = Store(tmp_path / "serial"), Store(tmp_path / "cluster")
    for task in tasks:
        one, other = serial.find(task), cluster.find(task)
        assert one is not None
        assert other is not None
        assert (one.fun, one.nnz, one.valid, one.queries) == (other.fun, other.nnz, other.valid, other.queries)


def test_without_a_journal_the_engine_may_not_begin_anything_again(client: Any, tmp_path: Path) -> None:
    """Dask would run the tasks of a lost worker a second time without a word."""
    function = Struck(tmp_path / "log", {1: "SIGKILL", 4: "sleep"})
    found = dict(spread(function, range(6), workers=Workers(client, silence=10 * SILENCE, deadline=2)))
    assert isinstance(found[1], WorkerError)
    assert isinstance(found[4], WorkerError)
    assert "deadline of 2 s" in str(found[4])
    assert {i: one for i, one in found.items() if i not in (1, 4)} == {0: 0, 2: 4, 3: 9, 5: 25}
    assert sorted(function.starts) == [0, 1, 2, 3, 4, 5]


def address_in(where: Path) -> str:
    """The address that a scheduler writes into this file: not at once, and not in one piece."""
    until = time.monotonic() + 60
    while True:
        try:
            return str(json.loads(where.read_text())["address"])
        except (OSError, ValueError):
            if time.monotonic() > until:
                raise
            time.sleep(0.1)


def test_a_scheduler_that_falls_silent_is_not_waited_for(tmp_path: Path) -> None:
    """It is stopped while its only worker runs the only unit."""
    from distributed import Client

    where = tmp_path / "scheduler.json"
    common = ["--scheduler-file", str(where), "--no-dashboard"]
    local = ["--host", "127.0.0.1"]
    commands = (["scheduler", "--port", "0", *local, *common], ["worker", "--no-nanny", *local, *common])
    function = Struck(tmp_path / "log", {0: "sleep"})
    processes = [
        subprocess.Popen(
            [sys.executable, "-m", "dask", *arguments], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        for arguments in commands
    ]
    try:
        address = address_in(where)
        with Client(address, set_as_default=False) as client:
            client.wait_for_workers(1, timeout=60)

        def stop() -> bool:
            if function.starts:
                processes[0].send_signal(signal.SIGSTOP)
            return False

        [(_, found)] = spread(
            function, range(1), workers=Workers(address.replace("tcp", "dask"), silence=SILENCE), stop=stop
        )
        assert isinstance(found, WorkerError)
        assert "the Dask scheduler has been silent" in str(found)
    finally:
        for process in processes:
            process.kill()
            process.wait()


def test_a_scheduler_that_is_not_there_and_a_client_of_another_kind_are_told() -> None:
    from distributed import Client

    class Asynchronous(Client):  # type: ignore[misc]
        """A client that was made inside an event loop."""

        asynchronous = True

        def __init__(self) -> None:
            """Connected to nothing."""

        def __del__(self) -> None:
            """So there is nothing to close."""

    began = time.monotonic()
    with pytest.raises(WorkerError, match=r"expected a Dask scheduler at tcp://127\.0\.0\.1:9"):
        list(spread(abs, range(3), workers=Workers("dask://127.0.0.1:9", silence=1)))
    assert time.monotonic() - began < 20
    with pytest.raises(ArgumentTypeError, match="expected a Dask client that is not asynchronous"):
        list(spread(abs, range(3), workers=Asynchronous()))
