"""explain(run_dir=...) and explain_many(run_dir=...): killed anywhere, the same explanation, and no query too many."""

from __future__ import annotations

import os
import shutil
import signal
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pytest

import zomirror as zm
from tests.support.loopback import Server, model_server, read_batch, reply
from tests.support.onnx_models import WEIGHTS
from zomirror.classifiers import http_classifier
from zomirror.engine import driver as engine
from zomirror.errors import RunError
from zomirror.runs import inspect, list_runs
from zomirror.runs.directory import RunDirectory

W = np.random.default_rng(0).normal(size=(12, 3))
X0 = np.full(12, 0.4)
MANY = np.random.default_rng(1).uniform(0.2, 0.8, size=(5, 12))


class Crash(BaseException):
    """Nothing of ours catches it, as nothing catches a kill."""


class Model:
    """Scores that do not depend on the other rows of a batch; counts, and fails at the calls it is told of."""

    def __init__(self, at: Any = (), error: Any = Crash, number: int | None = None) -> None:
        self.at, self.error, self.number = at, error, number
        self.rows = self.calls = 0

    def __call__(self, batch: Any) -> Any:
        self.rows += len(batch)
        self.calls += 1
        if self.calls in self.at:
            if self.number is None:
                raise self.error
            signal.raise_signal(self.number)
        return np.tanh((batch[:, :, None] * W).sum(axis=1))


@pytest.fixture
def path() -> Iterator[Path]:
    """A run directory that is not there yet, in memory where there is some: many runs are made."""
    memory = Path("/dev/shm")  # noqa: S108 - a directory of its own inside it
    with TemporaryDirectory(dir=memory if os.access(memory, os.W_OK) else None) as name:
        yield Path(name) / "run"


OPTIONS: dict[str, Any] = {"kind": "PN", "signed": True, "budget": 150, "rng": 0}


def explain(model: Any = None, x0: Any = X0, **options: Any) -> zm.Explanation:
    found: zm.Explanation = zm.explain(Model() if model is None else model, x0, **(OPTIONS | options))
    return found


def explain_many(model: Any = None, **options: Any) -> list[zm.Explanation]:
    return zm.explain_many(Model() if model is None else model, MANY, **(OPTIONS | options))


def bits(explanation: zm.Explanation) -> str:
    """All of an explanation but the queries that were lost on the way."""
    return explanation.to_json().replace(f'"sent": {explanation.sent},', "")


@cache
def undisturbed(seed: int = 0) -> str:
    """What every run that was disturbed comes to in the end."""
    return bits(explain(rng=seed))


@cache
def all_undisturbed() -> list[str]:
    return [bits(one) for one in explain_many()]


VARIANTS: dict[str, dict[str, Any]] = {
    "recommended PN": {},
    "recommended PP": {"kind": "PP", "signed": False},
    "zo_ada_expmd": {"method": zm.methods.zo_ada_expmd(10)},
    "zo_expmd": {"method": zm.methods.zo_expmd(2.0, 10)},
    "zo_psgd": {"method": zm.methods.zo_psgd(2.0, 10)},
    "small blocks": {
        "method": zm.methods.MirrorDescent(
            zm.methods.Entropy(), zm.methods.TwoPoint(9, max_block_bytes=300), zm.methods.Adaptive()
        )
    },
    "float32": {"x0": X0.astype(np.float32)},
    "softplus with a target": {"loss": "softplus", "target": 2},
    "levels": {"search": 2},
}


@pytest.mark.parametrize("name", VARIANTS)
def test_resumed_anywhere_is_the_uninterrupted_search_bit_for_bit(path: Path, name: str) -> None:
    """F13, F20."""
    options, counted = VARIANTS[name], Model()
    whole = explain(counted, **options)
    assert bits(explain(run_dir=path, **options)) == bits(whole)
    calls = range(1, counted.calls + 1)
    for k in {1, *calls[1 :: max(1, counted.calls // 3)], counted.calls}:
        shutil.rmtree(path)
        dying, rest = Model({k}), Model()
        with pytest.raises(Crash):
            explain(dying, run_dir=path, max_sent=1_000, **options)
        result = explain(rest, run_dir=path, max_sent=1_000, **options)
        assert bits(result) == bits(whole)
        assert result.sent == dying.rows + rest.rows
        info = inspect(path)
        assert (info.state, info.used, info.sent) == ("finished", whole.nfev, result.sent)


def test_a_finished_explanation_is_given_again_without_a_query_and_under_new_names(path: Path) -> None:
    first, never = explain(run_dir=path), Model()
    assert explain(never, run_dir=path).to_json() == first.to_json()
    named = explain(never, run_dir=path, class_names=["a", "b", "c"], feature_names=[f"x{i}" for i in range(12)])
    assert named.class_names == ("a", "b", "c")
    assert never.rows == 0
    for name in ("result.json", "result.npz"):
        data = (path / name).read_bytes()
        (path / name).write_bytes(data[:-3])
        assert explain(never, run_dir=path).to_json() == first.to_json(), "made again from the journal"
    assert never.rows == 0


def test_max_sent_holds_through_crashes(path: Path) -> None:
    """F21: the count on the other side."""
    model, cap = Model({3, 5, 8, 9}), explain().nfev  # as many as are needed when nothing is lost
    for _ in range(8):
        try:
            partial = explain(model, run_dir=path, max_sent=cap)
        except Crash:
            continue
        assert partial.status in (zm.Status.MAX_SENT, zm.Status.NOT_FOUND)
        assert model.rows == partial.sent <= cap
    assert model.rows <= cap
    assert bits(explain(model, run_dir=path, max_sent=1_000)) == undisturbed()


def test_a_model_that_fails_loses_its_batch_only(path: Path) -> None:
    """F1."""
    for k in (1, 4):
        model = Model({k}, RuntimeError("out of memory"))
        with pytest.raises(zm.errors.OracleError, match="out of memory") as caught:
            explain(model, run_dir=path / str(k), max_sent=1_000)
        assert caught.value.result.status is zm.Status.ERROR
        assert inspect(path / str(k)).state == "interrupted"
        assert bits(explain(model, run_dir=path / str(k), max_sent=1_000)) == undisturbed()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_the_first_signal_ends_the_search_after_the_batch_in_flight(path: Path, number: int) -> None:
    """F19."""
    model = Model({6}, number=number)
    partial = explain(model, run_dir=path)
    assert partial.status is zm.Status.INTERRUPTED
    assert "resumes it" in partial.message
    assert np.isfinite(partial.x).all()
    assert partial.nfev == partial.sent == model.rows
    assert (inspect(path).state, inspect(path).lost) == ("interrupted", 0)
    assert bits(explain(model, run_dir=path)) == undisturbed()
    assert model.rows == explain().nfev


def test_ctrl_c_without_a_run_directory_returns_what_was_found() -> None:
    model = Model({6}, number=signal.SIGINT)
    partial = explain(model)
    assert partial.status is zm.Status.INTERRUPTED
    assert "begins anew" in partial.message
    assert np.isfinite(partial.x).all()
    assert partial.nfev == model.rows
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


CHANGES: dict[str, dict[str, Any]] = {
    "asked.l1": {"l1": 0.2},
    "asked.budget": {"budget": 151},
    "asked.kappa": {"kappa": 0.01},
    "asked.method": {"method": zm.methods.zo_ada_expmd(10)},
    "asked.target": {"target": 1},
    "asked.search": {"search": 2},
    "asked.loss": {"loss": "softplus"},
    "seed": {"rng": 1},
    "x0": {"x0": X0 + 1e-9},
    "upper": {"bounds": (0, 2)},
    "scale": {"scale": 0.5},
    "lower": {"fixed": [0]},
}


@pytest.mark.parametrize("name", CHANGES)
def test_another_configuration_is_refused_by_name(path: Path, name: str) -> None:
    first, never = explain(run_dir=path), Model()
    with pytest.raises(zm.errors.RunError, match=rf"{name}[\w.]* was .* and is now .*another run_dir"):
        explain(never, run_dir=path, **CHANGES[name])
    assert never.rows == 0
    assert bits(explain(never, run_dir=path)) == bits(first)


def test_without_a_seed_the_stored_one_goes_on(path: Path) -> None:
    with pytest.raises(Crash):
        explain(Model({5}), run_dir=path, rng=None, max_sent=1_000)
    result = explain(run_dir=path, rng=None, max_sent=1_000)
    assert bits(result) == undisturbed(result.seed)


def test_nothing_of_the_model_but_its_kind_is_stored(path: Path) -> None:
    class Secretive(Model):
        def __repr__(self) -> str:
            return "Secretive(token=canary-3141592)"

    explain(Secretive(), run_dir=path)
    for file in path.iterdir():
        assert b"canary" not in file.read_bytes()
        assert b" at 0x" not in file.read_bytes()


def test_a_flipped_byte_of_the_scores_is_found_wherever_it_is(path: Path) -> None:
    """F14, for rows of several numbers."""
    whole = explain()
    with pytest.raises(Crash):
        explain(Model({4}), run_dir=path, max_sent=1_000)
    data = (path / "journal.bin").read_bytes()
    first = data.index(b"zm\x1a\x04")  # the record of the first scores
    for i in range(first, first + 96, 5):
        changed = bytearray(data)
        changed[i] ^= 0x10
        other = path.with_name("other")
        shutil.copytree(path, other)
        (other / "journal.bin").write_bytes(changed)
        with pytest.raises(zm.errors.RunError, match=r"journal\.bin' is damaged at byte"):
            explain(run_dir=other, max_sent=1_000)
        shutil.rmtree(other)
    assert bits(explain(run_dir=path, max_sent=1_000)) == bits(whole)


def test_answers_to_other_points_are_refused_by_name(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """F30: whatever makes this version ask other points, the recorded answers are not taken for theirs."""
    with pytest.raises(Crash):
        explain(Model({6}), run_dir=path, max_sent=1_000)
    from zomirror.contrast.search import multistart

    monkeypatch.setattr(multistart, "STARTS", (0.26, 1.0))
    never = Model()
    with pytest.raises(zm.errors.RunError, match="belong to other points than would be asked now: resume it with the"):
        explain(never, run_dir=path, max_sent=1_000)
    assert never.rows == 0


def test_more_classes_than_fit_into_sixteen_bits(path: Path) -> None:
    """F31: what was written can be read, however many scores a row has."""
    classes = 70_001
    weights = np.zeros((12, classes))
    weights[:, :3] = W

    class Wide(Model):
        def __call__(self, batch: Any) -> Any:
            super().__call__(batch)
            return batch @ weights

    given: dict[str, Any] = {"budget": 100, "max_sent": 1_000}
    whole = explain(Wide(), **given)
    with pytest.raises(Crash):
        explain(Wide({3}), run_dir=path, **given)
    assert bits(explain(Wide(), run_dir=path, **given)) == bits(whole)


@pytest.mark.parametrize("kind", ["PN", "PP"])
def test_a_model_that_fails_at_times_is_asked_again(path: Path, kind: str) -> None:
    """F1: explain has the policy of minimize, every attempt is in the ledger, and the answer is the same."""
    options: dict[str, Any] = {"kind": kind, "signed": kind == "PN", "max_sent": 1_000}
    whole = explain(**options)
    flaky = Model({2, 3, 6, 9, 10}, ConnectionError("gone"))
    one = explain(flaky, run_dir=path, on_error=zm.Retry(2), **options)
    assert bits(one) == bits(whole)
    assert one.sent == flaky.rows == inspect(path).sent > one.nfev
    hopeless = Model({4, 5, 6}, ConnectionError("gone"))
    with pytest.raises(
        zm.errors.OracleError, match=r"the model raised ConnectionError: gone .*attempt 3 of 3"
    ) as caught:
        explain(hopeless, on_error=zm.Retry(2), **options)
    assert caught.value.result.nfev < caught.value.result.sent == hopeless.rows
    many = explain_many(Model({2, 5}, ConnectionError("gone")), on_error=zm.Retry(2), max_sent=1_000, lockstep=2)
    assert [bits(each) for each in many] == all_undisturbed()


def test_scores_that_change_their_width_end_the_search_with_a_sentence(path: Path) -> None:
    """F32."""

    class Growing(Model):
        def __call__(self, batch: Any) -> Any:
            scores = super().__call__(batch)
            return scores if self.calls < 3 else np.hstack([scores, scores])

    with pytest.raises(zm.errors.OracleError, match="expected scores of 3 classes, as in the first answer, got 6"):
        explain(Growing(), run_dir=path)
    assert bits(explain(run_dir=path, max_sent=1_000)) == undisturbed()


def test_the_retries_of_a_model_behind_http_are_in_the_ledger(path: Path) -> None:
    """F9: what the server counts is what the ledger says, and no retry passes max_sent."""
    honest = model_server(WEIGHTS)

    def busy_at_times(request: Any, n: int) -> Any:
        return reply("busy", "503 Busy") if n % 5 == 3 else honest(request, n)

    given: dict[str, Any] = {"kind": "PN", "signed": True, "bounds": (-1, 1), "budget": 120, "rng": 0}
    with Server(busy_at_times) as server:
        model = http_classifier(server.url, model="linear", input="x", timeout=30.0, retries=4, rng=0)
        one = zm.explain(model, np.full(4, 0.1, np.float32), max_sent=500, run_dir=path, **given)
        asked = sum(len(read_batch(request)) for request in server.requests)
        assert one.sent == asked == inspect(path).sent > one.nfev == inspect(path).used
        seen = len(server.requests)
        tight = zm.explain(model, np.full(4, 0.1, np.float32), run_dir=path.with_name("tight"), **given)
        asked = sum(len(read_batch(request)) for request in server.requests[seen:])
        assert tight.sent == asked <= 120
        seen = len(server.requests)
        many = zm.explain_many(
            model, np.full((3, 4), 0.1, np.float32), max_sent=500, run_dir=path.with_name("many"), **given
        )
        asked = sum(len(read_batch(request)) for request in server.requests[seen:])
        assert sum(each.sent for each in many) == asked


def test_retries_deep_inside_a_function_are_in_the_ledger(path: Path) -> None:
    """F9: nothing tells that the function asks a server, and from several threads."""
    honest = model_server(WEIGHTS)

    def busy_at_times(request: Any, n: int) -> Any:
        return reply("busy", "503 Busy") if n % 7 == 3 else honest(request, n)

    with Server(busy_at_times) as server:
        model = http_classifier(server.url, model="linear", input="x", batch_rows=5, concurrency=2, timeout=30, rng=0)

        def fun(points: Any) -> Any:
            return model(points.astype(np.float32))[:, 0]

        given: dict[str, Any] = {"bounds": (-1, 1), "method": zm.methods.zo_ada_expmd(10), "budget": 78, "rng": 0}
        result = zm.minimize(fun, np.zeros(4), max_sent=500, run_dir=path, **given)
        asked = sum(len(read_batch(request)) for request in server.requests)
        assert asked == result.sent == inspect(path).sent > result.used == inspect(path).used
        assert result.lost == inspect(path).lost == asked - result.used
        seen = len(server.requests)
        tight = zm.minimize(fun, np.zeros(4), run_dir=path.with_name("tight"), **given)
        assert tight.status is zm.Status.MAX_SENT
        asked = sum(len(read_batch(request)) for request in server.requests[seen:])
        assert asked == tight.sent == inspect(path.with_name("tight")).sent <= 78
        seen = len(server.requests)
        one = zm.explain(lambda batch: model(batch), np.full(4, 0.1, np.float32), signed=True, budget=100, max_sent=300)
        asked = sum(len(read_batch(request)) for request in server.requests[seen:])
        assert one.sent == asked == one.used + one.lost > one.used


# --- many inputs -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("durable", [False, True])
def test_together_nothing_is_written_down_that_does_not_leave(path: Path, durable: bool) -> None:
    """The caps are reached in different rounds; who has reached its own must not cost the others anything."""
    ends = []
    for lockstep in (1, 6):
        model = Model()
        kept: dict[str, Any] = {"run_dir": path.with_name(f"of-{lockstep}")} if durable else {}
        found = explain_many(model, lockstep=lockstep, max_sent=60, **kept)
        assert sum(one.sent for one in found) == model.rows
        ends.append([(one.status, one.used, one.sent) for one in found])
    assert ends[0] == ends[1]
    assert any(status is zm.Status.MAX_SENT for status, *_ in ends[0])


@pytest.mark.parametrize("lockstep", [1, 3, 8])
def test_many_resumed_anywhere_are_the_same(path: Path, lockstep: int) -> None:
    counted = Model()
    explain_many(counted, lockstep=lockstep)
    for k in (counted.calls // 3, counted.calls):
        dying, rest = Model({k}), Model()
        with pytest.raises(Crash):
            explain_many(dying, lockstep=lockstep, run_dir=path, max_sent=2_000)
        assert inspect(path).state == "interrupted"
        results = explain_many(rest, lockstep=lockstep, run_dir=path, max_sent=2_000)
        assert [bits(one) for one in results] == all_undisturbed()
        assert sum(one.sent for one in results) == dying.rows + rest.rows
        info = inspect(path)
        assert (info.state, info.progress, info.sent) == ("finished", 1.0, dying.rows + rest.rows)
        assert [one.path.name for one in list_runs(path)] == [f"{i:06}" for i in range(5)]
        never = Model()
        assert [bits(one) for one in explain_many(never, run_dir=path, rng=None, max_sent=2_000)] == all_undisturbed()
        assert never.rows == 0
        shutil.rmtree(path)


def test_a_signal_stops_all_and_those_not_begun_say_so(path: Path) -> None:
    """F19."""
    model = Model({4}, number=signal.SIGTERM)
    partial = explain_many(model, lockstep=2, run_dir=path)
    assert {one.status for one in partial} == {zm.Status.INTERRUPTED}
    assert [one.nfev for one in partial[2:]] == [0, 0, 0]
    assert sum(one.sent for one in partial) == model.rows
    assert [bits(one) for one in explain_many(model, run_dir=path)] == all_undisturbed()


def test_a_member_is_the_run_that_explain_makes(path: Path) -> None:
    many = explain_many(run_dir=path)
    never = Model()
    for i, one in enumerate(many):
        assert explain(never, MANY[i], rng=one.seed, run_dir=path / f"{i:06}").to_json() == one.to_json()
    assert never.rows == 0


def test_other_inputs_or_options_are_refused_by_name(path: Path) -> None:
    explain_many(run_dir=path)
    never = Model()
    with pytest.raises(zm.errors.RunError, match="members was 5 and is now 4"):
        zm.explain_many(never, MANY[:4], run_dir=path, **OPTIONS)
    with pytest.raises(zm.errors.RunError, match=r"asked\.l2 was 0\.15 and is now 0\.3"):
        explain_many(never, run_dir=path, l2=0.3)
    with pytest.raises(zm.errors.RunError, match=r"x0\.sha256"):
        zm.explain_many(never, MANY[::-1], run_dir=path, **OPTIONS)
    assert never.rows == 0
    with pytest.raises(zm.errors.RunError, match="holds a group, this call makes a run"):
        explain(never, run_dir=path)


def test_one_input_that_fails_is_tried_again_and_the_others_are_not(path: Path) -> None:
    class Picky(Model):
        def __call__(self, batch: Any) -> Any:
            if self.at and (np.abs(batch - MANY[2]).max(axis=1) == 0).any():
                raise RuntimeError("this one not")
            return super().__call__(batch)

    first = explain_many(Picky({-1}), run_dir=path, max_sent=1_000)
    assert [one.status is zm.Status.ERROR for one in first] == [False, False, True, False, False]
    again = Model()
    results = explain_many(again, run_dir=path, max_sent=1_000)
    assert [bits(one) for one in results] == all_undisturbed()
    assert again.rows == results[2].nfev


def test_ten_thousand_inputs_do_not_need_ten_thousand_files_open(path: Path) -> None:
    """Runs are opened when their search begins: no more than lockstep of them at a time."""
    most = 0

    def counting(*args: Any) -> None:
        nonlocal most
        most = max(most, len(os.listdir("/proc/self/fd")))  # noqa: PTH208
        real(*args)

    before = len(os.listdir("/proc/self/fd"))  # noqa: PTH208
    from zomirror.engine.joint_batch import answer as real

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(engine, "answer", counting)
        explain_many(lockstep=1, run_dir=path)
    assert most - before < 2 * 6
    assert len(os.listdir("/proc/self/fd")) == before  # noqa: PTH208


def test_an_explanation_of_an_earlier_revision_of_its_method_is_not_gone_on_with(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same scores would lead it to other points than those that were asked."""
    with pytest.raises(Crash):
        explain(Model({4}), run_dir=path, max_sent=1_000)
    never = Model()
    monkeypatch.setattr(zm.methods.GroupMemory, "revision", zm.methods.GroupMemory.revision + 1)
    with pytest.raises(zm.errors.RunError, match="search_revision"):
        explain(never, run_dir=path, max_sent=1_000)
    assert never.rows == 0
    monkeypatch.undo()
    assert bits(explain(run_dir=path, max_sent=1_000)) == undisturbed()


def test_many_results_survive_a_group_directory_that_vanishes(path: Path) -> None:
    """F33."""

    def vanishing(batch: Any) -> Any:
        shutil.rmtree(path, ignore_errors=True)
        return Model()(batch)

    assert len(explain_many(vanishing, run_dir=path)) == len(MANY)


@pytest.mark.parametrize(
    ("names", "says"), [(["a"] * 5, "different names"), (["lock", "a", "b", "c", "d"], "lock"), (["a", "b"], "got 2")]
)
def test_names_of_runs_are_checked_before_anything_is_asked(path: Path, names: list[str], says: str) -> None:
    never = Model()
    with pytest.raises(zm.errors.ArgumentError, match=says):
        explain_many(never, run_dir=path, names=names)
    assert never.rows == 0


def test_a_cap_that_ends_a_search_early_says_so_and_the_run_goes_on_later(path: Path) -> None:
    def constant(batch: Any) -> Any:
        return np.tile([1.0, 0.0, 0.0], (len(batch), 1))

    one = explain(constant, run_dir=path, budget=500, max_sent=120)
    assert (one.valid, one.status) == (False, zm.Status.MAX_SENT)
    assert "max_sent = 120" in one.message
    assert "nothing valid has been found yet" in one.message
    assert inspect(path).state == "interrupted"
    whole = explain(constant, budget=500)
    assert whole.status is zm.Status.NOT_FOUND
    assert bits(explain(constant, run_dir=path, budget=500, max_sent=1_000)) == bits(whole)


def test_a_search_without_states_marks_its_place_for_inspect(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """F36: the journal is read from the mark on, and the search is replayed from its first query all the same."""
    monkeypatch.setattr(RunDirectory, "checkpoint_due", property(lambda self: not self.replaying))
    for k in (4, 9):
        with pytest.raises(Crash):
            explain(Model(at=[k]), run_dir=path, max_sent=1_000)
        assert inspect(path) == inspect(path, whole=True)
    assert bits(explain(run_dir=path, max_sent=1_000)) == undisturbed()
    (path / "result.json").unlink()
    data = bytearray((path / "journal.bin").read_bytes())
    data[300] ^= 1
    (path / "journal.bin").write_bytes(data)
    model = Model()
    with pytest.raises(RunError, match="damaged at byte"):
        explain(model, run_dir=path, max_sent=1_000)
    assert model.calls == 0
