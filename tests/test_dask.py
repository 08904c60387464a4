"""A real Dask cluster of two worker processes: the serial results bit for bit, though one is killed and one stopped."""

from __future__ import annotations

import os
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from distributed import Client, LocalCluster

import zomirror as zm
from tests.units import INPUTS, OPTIONS, Model, Struck, bits, lines
from zomirror.errors import ArgumentTypeError, WorkerError
from zomirror.experiments import pictures
from zomirror.experiments.grid import grid
from zomirror.experiments.runner import run
from zomirror.experiments.settings import Algorithm
from zomirror.experiments.store import Store
from zomirror.parallel import Workers, spread

SILENCE = 4.0


@pytest.fixture(scope="module")
def client() -> Iterator[Any]:
    local: dict[str, Any] = {"host": "127.0.0.1", "dashboard_address": "127.0.0.1:0", "silence_logs": 60}
    with (
        LocalCluster(n_workers=2, threads_per_worker=1, processes=True, **local) as cluster,  # type: ignore[no-untyped-call]
        Client(cluster) as client,  # type: ignore[no-untyped-call]
    ):
        yield client


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
    workers = Workers(client, silence=SILENCE)
    found = zm.explain_many(model, INPUTS, workers=workers, run_dir=tmp_path / "run", max_sent=600, **OPTIONS)
    assert sorted(path.name for path in tmp_path.glob("struck-*")) == ["struck-SIGKILL-200", "struck-SIGSTOP-700"]
    assert bits(found) == expected
    assert Counter(lines(model.log)) == Counter(lines(tmp_path / "serial"))
    assert sum(one.sent for one in found) > sum(one.nfev for one in found)  # the ledger holds what was lost


def test_the_experiments_are_the_serial_ones_though_a_worker_dies(client: Any, tmp_path: Path) -> None:
    lenet = pictures.network("mnist")
    algorithms = [Algorithm.named(name) for name in ("adaexpmd", "psgd-10", "recommended")]
    images = pictures.chosen("mnist", lenet, 1)
    tasks = grid("mnist", "printed", lenet, images, algorithms=algorithms, iterations=3)[:9]
    run(tasks, tmp_path / "serial")
    killed: list[int] = []

    def tell(done: int, _: int) -> None:
        if done == 3:  # in the middle of what the others do
            pid = next(iter(client.run(os.getpid).values()))
            os.kill(pid, 9)
            killed.append(pid)

    work = run(tasks, tmp_path / "cluster", workers=Workers(client, silence=SILENCE), tell=tell)
    assert (work.computed, work.left, len(killed)) == (9, 0, 1)
    serial, cluster = Store(tmp_path / "serial"), Store(tmp_path / "cluster")
    for task in tasks:
        one, other = serial.find(task), cluster.find(task)
        assert one is not None
        assert other is not None
        assert (one.fun, one.nnz, one.valid, one.queries) == (other.fun, other.nnz, other.valid, other.queries)


def test_without_a_journal_the_engine_may_not_begin_anything_again(client: Any, tmp_path: Path) -> None:
    """Dask would run the tasks of a lost worker a second time without a word."""
    function = Struck(tmp_path / "log", {1: "SIGKILL", 4: "sleep"})
    found = dict(spread(function, range(6), workers=Workers(client, silence=SILENCE, deadline=2)))
    assert isinstance(found[1], WorkerError)
    assert isinstance(found[4], WorkerError)
    assert "deadline of 2 s" in str(found[4])
    assert {i: one for i, one in found.items() if i not in (1, 4)} == {0: 0, 2: 4, 3: 9, 5: 25}
    assert sorted(function.starts) == [0, 1, 2, 3, 4, 5]


def test_a_scheduler_that_is_not_there_and_a_client_of_another_kind_are_told() -> None:
    began = time.monotonic()
    with pytest.raises(WorkerError, match=r"expected a Dask scheduler at tcp://127\.0\.0\.1:9"):
        list(spread(abs, range(3), workers=Workers("dask://127.0.0.1:9", silence=1)))
    assert time.monotonic() - began < 20
    with pytest.raises(ArgumentTypeError, match="expected a Dask client that is not asynchronous"):
        list(spread(abs, range(3), workers=Asynchronous()))


class Asynchronous(Client):
    """A client that was made inside an event loop."""

    asynchronous = True

    def __init__(self) -> None:
        """Connected to nothing."""

    def __del__(self) -> None:
        """So there is nothing to close."""
