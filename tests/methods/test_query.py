"""Queries: the layout of the rows, blocks on demand, draws of a stochastic function."""

from __future__ import annotations

import pickle
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import zomirror as zm
import zomirror.methods.query as queries
from tests.conftest import DIRECTIONS
from zomirror.methods.directions import PART_BYTES, Directions
from zomirror.methods.query import Query, Segment, Stream, blocks
from zomirror.numerics import kernels
from zomirror.numerics.random import key_of
from zomirror.runs.record import MOST_ROWS

pytestmark = pytest.mark.usefixtures("loops")


def stream(directions: Directions, count: int, d: int, free: Any = None, max_block_bytes: int = 1 << 20) -> Stream:
    return Stream(directions, key_of(0), 3, count, d, np.dtype(np.float64), free, max_block_bytes)


def query(directions: Directions, m: int, d: int, *, draws: int | None = None) -> Query:
    x = np.linspace(-1, 1, d)
    base = Segment(x, 1 if draws is None else m, first_sample=draws)
    return Query((base, Segment(x, m, stream(directions, m, d), 0.1, first_sample=draws)))


@pytest.mark.parametrize("directions", DIRECTIONS, ids=str)
def test_rows_are_x_and_then_x_plus_radius_u(directions: Directions) -> None:
    q = query(directions, 6, 10)
    x, u = np.linspace(-1, 1, 10), stream(directions, 6, 10).rows(0, 6)
    points = q.points()
    assert (len(q), q.d, str(q.dtype)) == (7, 10, "float64")
    assert points.shape == (7, 10)
    assert (points[0] == x).all()
    np.testing.assert_allclose(points[1:], x + 0.1 * u, rtol=1e-14)


@given(start=st.integers(0, 12), stop=st.integers(0, 12), directions=st.sampled_from(DIRECTIONS))
def test_any_rows_on_demand_are_the_same_bits(start: int, stop: int, directions: Directions) -> None:
    start, stop = sorted((start, stop))
    q = query(directions, 5, 9, draws=40)  # ten rows in two segments
    start, stop = min(start, 10), min(stop, 10)
    assert q.points(start, stop).tobytes() == q.points()[start:stop].tobytes()
    if start < stop:
        assert (q.samples(start, stop) == q.samples()[start:stop]).all()


def test_rows_can_be_written_into_memory_of_the_caller() -> None:
    q = query(zm.methods.rademacher, 5, 9)
    out = np.full((3, 9), np.nan)
    assert q.points(2, 5, out=out) is out
    assert (out == q.points()[2:5]).all()


def test_draws_are_shared_in_pairs() -> None:
    q = query(zm.methods.rademacher, 4, 3, draws=40)
    assert q.stochastic
    assert q.samples().tolist() == [40, 41, 42, 43, 40, 41, 42, 43]
    assert q.samples().dtype == np.int64
    assert not query(zm.methods.rademacher, 4, 3).stochastic


def test_clip_keeps_points_in_the_box() -> None:
    q = query(zm.methods.rademacher, 50, 10)
    box = zm.methods.Box(-1.0, 1.0)
    clipped = replace(q, clip=box)
    assert np.abs(q.points()).max() == pytest.approx(1.1)
    assert (clipped.points() == box.project(q.points())).all()


@pytest.mark.parametrize("directions", DIRECTIONS, ids=str)
def test_only_free_coordinates_move(directions: Directions) -> None:
    free = np.array([1, 4, 5])
    s = stream(directions, 40, 8, free)
    x = np.arange(8.0)
    points = np.empty((40, 8))
    s.add(x, 0.1, 0, points)
    moved = points - x
    fixed = np.setdiff1d(np.arange(8), free)
    assert (moved[:, fixed] == 0).all()
    assert (moved[:, free] != 0).any(axis=0).all()
    assert s.delta == directions.delta(3)
    assert s.width == 3
    np.testing.assert_allclose(moved[:, free], 0.1 * s.rows(0, 40), atol=1e-15)


@pytest.mark.parametrize("directions", DIRECTIONS, ids=str)
@pytest.mark.parametrize("free", [None, np.array([0, 2, 6])], ids=["all", "some"])
@pytest.mark.parametrize("max_block_bytes", [1, 200, 1 << 20])
def test_combine_is_the_transposed_product(directions: Directions, free: Any, max_block_bytes: int) -> None:
    s = stream(directions, 23, 7, free, max_block_bytes)
    w = np.random.default_rng(0).normal(size=23)
    u = np.zeros((23, 7))
    u[:, slice(None) if free is None else free] = s.rows(0, 23)
    np.testing.assert_allclose(s.combine(w), u.T @ w, rtol=1e-12, atol=1e-13)


@pytest.mark.parametrize("directions", DIRECTIONS, ids=str)
def test_nothing_free_is_nothing_moved(directions: Directions) -> None:
    s = stream(directions, 4, 3, np.array([], np.intp))
    points = np.empty((4, 3))
    s.add(np.arange(3.0), 0.1, 0, points)
    assert (points == np.arange(3)).all()
    assert s.combine(np.ones(4)).tolist() == [0, 0, 0]


@given(count=st.integers(1, 500), width=st.integers(0, 300), max_bytes=st.integers(1, 10_000))
def test_blocks_cover_every_row_once_within_the_size(count: int, width: int, max_bytes: int) -> None:
    cut = list(blocks(count, width, np.dtype(np.float64), max_bytes))
    assert [row for start, stop in cut for row in range(start, stop)] == list(range(count))
    assert all((stop - start) * width * 8 <= max_bytes or stop - start == 1 for start, stop in cut)


def test_a_block_of_a_narrow_problem_fits_one_record_of_a_journal() -> None:
    sizes = [stop - start for start, stop in blocks(3 * MOST_ROWS + 5, 1, np.dtype(np.float32), 1 << 40)]
    assert sizes == [MOST_ROWS, MOST_ROWS, MOST_ROWS, 5]


def test_an_answer_is_not_changed_by_the_next_one() -> None:
    """Scratch memory is reused inside; nothing that is given away may live in it."""
    s, other = (
        stream(zm.methods.rademacher, 9, 7, np.array([1, 2])),
        stream(zm.methods.gaussian, 9, 7, np.array([0, 3])),
    )
    first = s.combine(np.ones(9))
    kept = first.copy()
    other.combine(np.ones(9))
    assert (first == kept).all()


@pytest.mark.parametrize("directions", DIRECTIONS, ids=str)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("max_block_bytes", [1, 9_000, 1 << 26])
def test_what_stays_in_the_cache_is_nobodys_business(
    directions: Directions, dtype: Any, max_block_bytes: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Patches and strips are a matter of speed: not a bit of the points or of the sums may depend on them."""
    d, x = 700, np.linspace(-1, 1, 700).astype(dtype)
    w = np.random.default_rng(0).normal(size=12)

    def made() -> tuple[bytes, bytes]:
        s = Stream(directions, key_of(0), 3, 12, d, np.dtype(dtype), None, max_block_bytes)
        points = np.empty((12, d), dtype)
        s.add(x, 0.1, 0, points)
        return points.tobytes(), s.combine(w).tobytes()

    whole = made()
    for patch, strip in ((1, 256), (2_000, 256), (6_000, 512), (20_000, 256)):
        monkeypatch.setattr(queries, "PATCH_BYTES", patch)
        monkeypatch.setattr(queries, "STRIP", strip)
        assert made() == whole


@pytest.mark.parametrize("directions", DIRECTIONS, ids=str)
def test_the_sum_is_taken_row_after_row(directions: Directions) -> None:
    """One order, written out: it holds on every machine, with any number of threads."""
    s = stream(directions, 40, 33)
    w = np.random.default_rng(1).normal(size=40)
    total = np.zeros(33)
    for weight, row in zip(w, s.rows(0, 40), strict=True):
        total += weight * row
    assert s.combine(w).tobytes() == total.tobytes()


def test_two_batches_in_flight_do_not_meet() -> None:
    """What was kept of the last batch may serve that batch only."""
    a, b = stream(zm.methods.rademacher, 9, 70), replace(stream(zm.methods.rademacher, 9, 70), t=4)
    w = np.arange(9.0)
    wanted = [s.rows(0, 9).T @ w for s in (a, b)]
    for s in (a, b):
        s.add(np.zeros(70), 1.0, 0, np.empty((9, 70)))
    for s, product in zip((a, b, a), (wanted[0], wanted[1], wanted[0]), strict=True):
        np.testing.assert_allclose(s.combine(w), product, atol=1e-12)


def test_rows_of_another_batch_leave_no_trace() -> None:
    """They are made where the bits of the last batch were kept."""
    a, b = stream(zm.methods.rademacher, 9, 70), replace(stream(zm.methods.rademacher, 9, 70), t=4)
    w = np.arange(9.0)
    wanted = a.rows(0, 9).T @ w
    a.add(np.zeros(70), 1.0, 0, np.empty((9, 70)))
    b.rows(0, 9)
    np.testing.assert_allclose(a.combine(w), wanted, atol=1e-12)


def test_whoever_comes_between_leaves_no_trace() -> None:
    """A function that minimises inside, or a signal handler, may ask another batch between points and sums."""
    a, b = stream(zm.methods.rademacher, 9, 70), replace(stream(zm.methods.rademacher, 9, 70), t=4)
    w = np.arange(9.0)
    wanted = [s.rows(0, 9).T @ w for s in (a, b)]
    a.add(np.zeros(70), 1.0, 0, np.empty((9, 70)))
    kept = None if a.drawn.bits is None else a.drawn.bits.copy()
    b.add(np.zeros(70), 1.0, 0, np.empty((9, 70)))
    b.combine(w)
    assert (kept is None) == (a.drawn.bits is None)
    assert kept is None or a.drawn.bits is None or (a.drawn.bits == kept).all()
    for s, product in zip((a, b), wanted, strict=True):
        np.testing.assert_allclose(s.combine(w), product, atol=1e-12)


@pytest.mark.parametrize("free", [None, np.arange(3, 90)], ids=["all", "some"])
@pytest.mark.parametrize("rows", [(0, 9), (0, 4), (5, 9)], ids=["whole", "first rows", "last rows"])
def test_drawn_bits_are_those_of_the_whole_batch_or_none(free: Any, rows: tuple[int, int]) -> None:
    """The sum has the same bits after any rows of the batch were made, and in a copy that holds none."""
    fresh = stream(zm.methods.rademacher, 9, 100, free)
    used, (start, stop), w = replace(fresh), rows, np.arange(9.0)
    used.add(np.zeros(100), 1.0, start, np.empty((stop - start, 100)))
    if stop - start < 9:
        assert used.drawn.bits is None
    for copied in (replace(used), pickle.loads(pickle.dumps(used))):  # noqa: S301 - our own
        assert copied.drawn.bits is None
        assert copied.combine(w).tobytes() == used.combine(w).tobytes() == fresh.combine(w).tobytes()


def test_drawn_bits_are_bounded() -> None:
    for rows, width, kept in ((2, 256, True), (2, 8 * PART_BYTES, False), (1, 8 * PART_BYTES + 1, False)):
        s = stream(zm.methods.rademacher, rows, width)
        s.add(np.zeros(width), 1.0, 0, np.empty((rows, width)))
        assert (s.drawn.bits is not None) == (kept and kernels.compiled is not None)


METHODS = [zm.methods.zo_ada_expmd(8), zm.methods.zo_ada_psgd(8), None]


def minimised(method: Any, seed: int, inside: Any = None) -> bytes:
    def fun(points: Any) -> Any:
        if inside is not None:
            inside()
        return np.square(points - 0.3).sum(axis=1)

    bounds = (np.zeros(40), np.where(np.arange(40) % 5, 1.0, 0.0))  # every fifth coordinate is fixed
    result = zm.minimize(fun, np.zeros(40), l1=0.05, bounds=bounds, budget=300, method=method, rng=seed)
    return result.x.tobytes() + result.history.fun.tobytes()


@pytest.mark.parametrize("method", METHODS, ids=["signs", "normal", "groups"])
def test_a_run_inside_the_function_changes_nothing(method: Any) -> None:
    alone = minimised(method, 1)
    within: list[bytes] = []
    assert minimised(method, 1, lambda: within.append(minimised(method, 2 + len(within) % 2))) == alone
    assert within[:2] == [minimised(method, 2), minimised(method, 3)]


@pytest.mark.parametrize("method", METHODS, ids=["signs", "normal", "groups"])
def test_runs_in_two_threads_change_nothing(method: Any) -> None:
    alone = [minimised(method, seed) for seed in range(8)]
    with ThreadPoolExecutor(2) as pool:
        assert list(pool.map(lambda seed: minimised(method, seed), range(8))) == alone


def test_strips_begin_where_a_counter_does() -> None:
    assert queries.STRIP % 256 == 0
    assert queries.STRIP // 256 % 2 == 1


def test_float32_sums_of_signs_lose_little() -> None:
    """Each of m additions rounds once: the error is below m eps sum |w|, far below the noise of an estimate."""
    m, d = 200, 784
    w = np.random.default_rng(2).normal(size=m)
    narrow = Stream(zm.methods.rademacher, key_of(0), 3, m, d, np.dtype(np.float32))
    exact = replace(narrow, dtype=np.dtype(np.float64)).combine(w)
    error = np.abs(narrow.combine(w) - exact)
    assert narrow.combine(w).dtype == np.float32
    assert error.max() <= m * np.finfo(np.float32).eps * np.abs(w).sum()
    assert error.max() < 1e-5 * np.abs(exact).max(), "and in practice by far"
