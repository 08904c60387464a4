"""The compiled loops: the same bits as numpy's, on everything that may come; and nobody misses them."""

from __future__ import annotations

import math
import os
import platform
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from runpy import run_path
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as npst

import zomirror as zm
import zomirror.methods.query as queries
from zomirror.methods import directions
from zomirror.methods.coordinate_groups import Groups, drawn, mended
from zomirror.methods.query import Stream
from zomirror.numerics import kernels
from zomirror.numerics.arrays import Array, step_norms, sums
from zomirror.numerics.random import fill_normals, key_of
from zomirror.problem import Box, ElasticNet

COMPILED = kernels.found()
needs = pytest.mark.skipif(COMPILED is None, reason="this installation has no compiled loops")
FLOATS = st.sampled_from([np.dtype(np.float32), np.dtype(np.float64)])
POSITIVE = st.floats(1e-6, 1e6)


@contextmanager
def loops(compiled: ModuleType | None) -> Iterator[None]:
    before, kernels.compiled = kernels.compiled, compiled
    try:
        yield
    finally:
        kernels.compiled = before


def both(run: Callable[[], Array]) -> tuple[Array, Array]:
    """What numpy gives, and what the compiled loops give."""
    results = []
    for compiled in (None, COMPILED):
        with loops(compiled), np.errstate(all="ignore"):
            results.append(run())
    return results[0], results[1]


def same(run: Callable[[], Array]) -> None:
    one, other = both(run)
    assert (one.dtype, one.shape) == (other.dtype, other.shape)
    assert one.tobytes() == other.tobytes()


@pytest.mark.skipif(os.environ.get(kernels.VARIABLE) == "0", reason="asked to do without them")
@pytest.mark.skipif(bool(sysconfig.get_config_var("Py_GIL_DISABLED")), reason="no stable binary interface")
def test_they_are_there_wherever_there_is_a_compiler() -> None:
    compiler = (sysconfig.get_config_var("LDSHARED") or "cc").split()[0]
    if shutil.which(compiler) and Path(sysconfig.get_paths()["include"], "Python.h").is_file():
        assert COMPILED is not None


@needs
@given(
    key=st.tuples(*[st.integers(0, 2**64 - 1)] * 2),
    counter=st.tuples(*[st.one_of(st.integers(0, 2**64 - 1), st.just(2**64 - 1))] * 4),
    count=st.integers(0, 30),
)
def test_words_are_those_of_the_philox_of_numpy(
    key: tuple[int, int], counter: tuple[int, int, int, int], count: int
) -> None:
    from zomirror.numerics import _kernels

    theirs = np.random.Philox(key=np.array(key, np.uint64), counter=np.array(counter, np.uint64)).random_raw(count)
    ours = np.empty(count, np.uint64)
    _kernels.words(ours, *key, *counter, 1, 0, count)
    assert (ours == theirs).all()


@needs
def test_rows_of_words_begin_where_they_are_told() -> None:
    from zomirror.numerics import _kernels

    rows = np.zeros((3, 7), np.uint64)
    _kernels.words(rows, 1, 2, 40, 0, 5, 6, 3, 10, 6)
    for j, row in enumerate(rows):
        key, counter = np.array([1, 2], np.uint64), np.array([40 + 10 * j, 0, 5, 6], np.uint64)
        assert (row[:6] == np.random.Philox(key=key, counter=counter).random_raw(6)).all()
    assert not rows[:, 6].any(), "nothing is written between the rows"


@needs
@given(
    m=st.integers(1, 40),
    d=st.one_of(st.integers(1, 70), st.sampled_from([255, 256, 257, 784, 5_000])),
    start=st.integers(0, 3),
    dtype=FLOATS,
    radius=st.floats(1e-8, 10),
    seed=st.integers(0, 5),
)
def test_points_are_the_same(m: int, d: int, start: int, dtype: Any, radius: float, seed: int) -> None:
    x = np.random.default_rng(seed).standard_normal(d).astype(dtype)

    def points() -> Array:
        out = np.empty((m, d), dtype)
        Stream(zm.methods.rademacher, key_of(seed), 7, m + start, d, dtype).add(x, radius, start, out)
        return out

    same(points)


@needs
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("d", [1, 31, 32, 36, 256, 260, 1_000, 1_001])
@pytest.mark.parametrize("offset", [0, 1])
def test_points_beyond_the_cache_are_the_same(dtype: Any, d: int, offset: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """They are written past it, if they begin where that is possible."""
    x = np.random.default_rng(d).standard_normal(d).astype(dtype)

    def points() -> Array:
        memory = np.full(5 * d + 16, -7.0, dtype)
        first = -memory.ctypes.data % 64 // memory.itemsize + offset
        out = memory[first : first + 5 * d].reshape(5, d)
        Stream(zm.methods.rademacher, key_of(3), 7, 5, d, np.dtype(dtype)).add(x, 0.1, 0, out)
        assert (memory[:first] == -7).all(), "nothing is written before them"
        assert (memory[first + 5 * d :] == -7).all(), "nor after them"
        return out

    monkeypatch.setattr(directions, "CACHE_BYTES", 0)
    monkeypatch.setattr(directions, "LONG_BYTES", 0)
    same(points)


@needs
@given(
    m=st.integers(1, 40),
    d=st.one_of(st.integers(1, 70), st.sampled_from([255, 256, 257, 784, 5_000])),
    dtype=FLOATS,
    share=st.sampled_from([0.0, 0.3, 1.0]),
    block=st.sampled_from([1, 2_000, 1 << 26]),
    seed=st.integers(0, 5),
)
def test_sums_of_directions_are_the_same(m: int, d: int, dtype: Any, share: float, block: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    weights = rng.standard_normal(m) * 10.0 ** rng.integers(-6, 6, m)
    free = None if share == 1 else np.flatnonzero(rng.random(d) < share)
    stream = Stream(zm.methods.rademacher, key_of(seed), 3, m, d, dtype, free, block)
    same(lambda: stream.combine(weights))

    def moved() -> Array:
        out = np.empty((m, d), dtype)
        stream.add(np.linspace(0, 1, d, dtype=dtype), 0.1, 0, out)
        return out

    same(moved)


@needs
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_rows_larger_than_the_cache_are_the_same(dtype: Any) -> None:
    d, weights = 600_001, np.array([1.5, -2.25, 1e-3])
    stream = Stream(zm.methods.rademacher, key_of(1), 2, 3, d, np.dtype(dtype))
    same(lambda: stream.combine(weights))


@needs
@given(data=st.data(), dtype=FLOATS, l1=st.floats(0, 10), l2=st.one_of(st.just(0.0), POSITIVE), eta=POSITIVE)
@settings(max_examples=300)
def test_mirror_steps_are_the_same(data: st.DataObject, dtype: Any, l1: float, l2: float, eta: float) -> None:
    entries = st.floats(-(2.0**100), 2.0**100, width=dtype.itemsize * 8)
    x, g = (data.draw(npst.arrays(dtype, 9, elements=entries)) for _ in range(2))
    width, bound = data.draw(POSITIVE), data.draw(st.sampled_from([math.inf, 1.0, 1e3]))
    box = Box.of((-bound, bound), x.size).astype(dtype)
    same(lambda: zm.methods.Entropy(width).step(box.project(x), g, eta, ElasticNet(l1, l2), box))


@needs
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_what_is_not_finite_stays_the_same(dtype: Any) -> None:
    z = np.array([math.nan, math.inf, -math.inf, 0.0, -0.0, 5e-324, 1e-40, 700.0, -3.0], dtype)
    x = np.zeros(9, dtype)
    for bounds in (None, (-2, 2), (np.full(9, -0.0), np.arange(9.0))):
        box = Box.of(bounds, 9).astype(np.dtype(dtype))
        same(lambda: zm.methods.Entropy().step(x, z, 1.0, ElasticNet(0.1, 0.1), box))  # noqa: B023 - called at once
    same(lambda: np.array(sums(z) + sums(x, z)))


@needs
@given(
    n=st.one_of(st.integers(0, 70), st.sampled_from([255, 256, 257, 5_000])), dtype=FLOATS, seed=st.integers(0, 2**32)
)
def test_norms_are_the_same(n: int, dtype: Any, seed: int) -> None:
    rng = np.random.default_rng(seed)
    x, y = ((rng.standard_normal(n) * 10.0 ** rng.uniform(-30, 30, n)).astype(dtype) for _ in range(2))
    same(lambda: np.array(sums(x) + sums(x, y)))
    same(lambda: np.array(step_norms(x, y)))
    wide = x.astype(np.longdouble) - y.astype(np.longdouble)
    np.testing.assert_allclose(sums(x, y), [np.abs(wide).sum(), np.square(wide).sum()], rtol=1e-14)


def drawn_groups(n: int, k: int, dtype: Any, share: float, seed: int) -> tuple[Groups, Array, Array]:
    """Groups of some of 2n coordinates, a point and a memory of the gradient."""
    rng = np.random.default_rng(seed)
    free = None if share == 1 else np.sort(rng.choice(2 * n, n, replace=False))
    moves = (rng.choice([-1.0, 1.0], n) * rng.uniform(0.1, 3, n)).astype(dtype)
    groups = Groups(rng.permutation(n) % k, moves, k, free, n if free is None else 2 * n)
    w = (rng.standard_normal(n) * 10.0 ** rng.integers(-4, 4, n)).astype(dtype)
    return groups, rng.standard_normal(groups.d).astype(dtype), w


@needs
@given(
    n=st.one_of(st.integers(1, 70), st.sampled_from([784, 5_000])),
    k=st.integers(1, 20),
    dtype=FLOATS,
    share=st.sampled_from([0.0, 1e-30, 0.7, 1e30]),
    t=st.one_of(st.integers(0, 9), st.just(2**63)),
    seed=st.integers(0, 500),
)
def test_groups_are_drawn_the_same(n: int, k: int, dtype: Any, share: float, t: int, seed: int) -> None:
    """The permutation and the signs of numerics/random.py."""
    x = np.random.default_rng(seed).standard_normal(n).astype(dtype)
    same(lambda: drawn(x, k, share, 0.5, key_of(seed), t)[1])
    same(lambda: drawn(x, k, share, 0.5, key_of(seed), t)[0].astype(float))


@needs
@given(
    rows=st.integers(0, 3),
    d=st.one_of(st.integers(0, 70), st.sampled_from([784, 5_000])),
    dtype=FLOATS,
    t=st.one_of(st.integers(0, 9), st.just(2**64 - 1)),
    start=st.one_of(st.integers(0, 9), st.just(2**40)),
    seed=st.integers(0, 500),
)
def test_normal_numbers_are_the_same(rows: int, d: int, dtype: Any, t: int, start: int, seed: int) -> None:
    def made() -> Array:
        out = np.empty((rows, d), dtype)
        fill_normals(out, key_of(seed), t, start)
        return out

    same(made)


@needs
@given(
    n=st.integers(1, 300),
    k=st.integers(1, 20),
    dtype=FLOATS,
    share=st.sampled_from([0.5, 1.0]),
    start=st.integers(0, 5),
    radius=st.floats(-1.0, 1.0),
    seed=st.integers(0, 5),
)
def test_rows_of_groups_are_the_same(
    n: int, k: int, dtype: Any, share: float, start: int, radius: float, seed: int
) -> None:
    groups, x, _ = drawn_groups(n, min(n, k), dtype, share, seed)

    def rows() -> Array:
        out = np.empty((max(1, groups.count - 2 * start), groups.d), dtype)
        groups.add(x, radius, min(start, groups.count - 1), out)
        return out

    same(rows)


@needs
@given(
    n=st.integers(1, 300),
    k=st.integers(1, 20),
    dtype=FLOATS,
    theta=st.floats(0.0, 2.0),
    gain=st.floats(0.01, 1.0),
    seed=st.integers(0, 5),
    odd=st.sampled_from([1.0, 0.0, -0.0, math.inf, math.nan, 1e-310]),
)
def test_what_a_batch_of_groups_tells_is_the_same(
    n: int, k: int, dtype: Any, theta: float, gain: float, seed: int, odd: float
) -> None:
    groups, _, w = drawn_groups(n, min(n, k), dtype, 1.0, seed)
    y = np.random.default_rng(seed + 1).standard_normal(groups.count)
    y[: groups.count // 3] = odd
    w[: n // 5] = odd

    def told() -> Array:
        g, after, earned = mended(groups, y, w, theta, gain)
        return np.concatenate([g, after, np.array([earned])])

    one, other = both(told)
    np.testing.assert_array_equal(one, other)
    assert (np.signbit(one) == np.signbit(other))[~np.isnan(one)].all()


@needs
def test_arrays_that_are_not_contiguous_are_left_to_numpy() -> None:
    x, g = np.linspace(-1, 1, 40)[::2], np.linspace(2, -3, 40)[::2]
    h, box = ElasticNet(0.1, 0.1), Box.of(None, 20).astype(x.dtype)
    whole = zm.methods.Entropy().step(x.copy(), g.copy(), 1.0, h, box)
    assert zm.methods.Entropy().step(x, g, 1.0, h, box).tobytes() == whole.tobytes()
    strided = np.empty((6, 40))[:, ::2]
    stream = Stream(zm.methods.rademacher, key_of(0), 1, 6, 20, x.dtype)
    stream.add(x, 0.5, 0, strided)
    assert (strided == x + 0.5 * stream.rows(0, 6)).all()


@needs
def test_types_that_they_do_not_know_are_left_to_numpy() -> None:
    x, g = np.array([0.5, 0, 1, 0, -1]), np.array([1.0, 2, 3, -1, 0])
    swapped = np.dtype(np.float64).newbyteorder()
    same(
        lambda: zm.methods.Entropy().step(
            x.astype(swapped), g.astype(swapped), 1.0, ElasticNet(0.1, 0.1), Box.of(None, 5)
        )
    )
    same(lambda: zm.methods.Entropy().step(x, g[:1], 1.0, ElasticNet(0.1, 0.1), Box.of(None, 5)))
    same(lambda: Stream(zm.methods.rademacher, key_of(0), 1, 4, 6, np.dtype(np.longdouble)).combine(np.arange(4.0)))

    def wider() -> Array:
        narrow, out = np.linspace(0, 1, 16, dtype=np.float32), np.empty((4, 16))
        Stream(zm.methods.rademacher, key_of(1), 3, 4, 16, narrow.dtype).add(narrow, 0.1, 0, out)
        return out

    same(wider)


@needs
def test_what_others_make_of_rademacher_is_left_to_them() -> None:
    class Ones(type(zm.methods.rademacher)):  # type: ignore[misc]
        def fill_columns(self, out: Array, *place: Any) -> None:
            out[:] = 1

    stream = Stream(Ones(), key_of(0), 1, 4, 6, np.dtype(np.float64))
    assert (stream.combine(np.arange(4.0)) == 6).all()


@needs
def test_more_rows_than_a_block_holds_are_added_up_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(queries, "MAX_BLOCK_ROWS", 7)
    weights = np.random.default_rng(0).standard_normal(50) * 10.0 ** np.arange(50)
    same(
        lambda: Stream(zm.methods.rademacher, key_of(1), 3, 50, 3, np.dtype(np.float32)).combine(
            weights[::-1].copy() / 1e40
        )
    )


@needs
def test_the_zero_of_a_single_coordinate_has_the_same_sign() -> None:
    for t in range(4):
        stream = Stream(zm.methods.rademacher, key_of(1), t, 1, 1, np.dtype(np.float64))
        same(lambda: stream.combine(np.array([-0.0])))  # noqa: B023 - called at once
        same(lambda: stream.combine(np.array([0.0])))  # noqa: B023


def test_wrong_numbers_of_weights_and_steps_are_refused() -> None:
    stream = Stream(zm.methods.rademacher, key_of(0), 1, 4, 6, np.dtype(np.float64))
    with pytest.raises(zm.errors.ArgumentError, match="4 weights"):
        stream.combine(np.zeros(3))
    for t in (-1, 1 << 64):
        beyond = Stream(zm.methods.rademacher, key_of(0), t, 4, 6, np.dtype(np.float64))
        with pytest.raises(OverflowError):
            beyond.rows(0, 2)
        with pytest.raises(OverflowError):
            beyond.add(np.zeros(6), 1.0, 0, np.empty((4, 6)))


@needs
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("preset", [zm.methods.zo_ada_expmd, zm.methods.zo_expmd, zm.methods.zo_ao_expmd, None])
def test_runs_are_the_same(preset: Callable[..., Any] | None, dtype: Any) -> None:
    def quadratic(X: Array) -> Array:
        wanted: Array = np.square(X[:, :5] - 1).sum(axis=1)
        return wanted

    def last() -> Array:
        method = None if preset is None else preset(20)
        x0 = np.zeros(300, dtype)
        return zm.minimize(quadratic, x0, l1=0.05, l2=0.1, bounds=(-2, 2), budget=2_000, method=method, rng=1).x

    same(last)


ROOT = Path(__file__).parents[2]
VECTORS = {"sse2": "sse2", "avx2": "avx2", "avx512": "avx512f avx512bw avx512cd avx512dq avx512vl"}
"""Kinds of vectors that functions are compiled for, and what a processor must be able to do for each."""


def kinds() -> list[str]:
    """Those that can be compiled and run here."""
    abilities = Path("/proc/cpuinfo")
    compiler = (os.environ.get("CC") or sysconfig.get_config_var("LDSHARED") or "cc").split()[0]
    if COMPILED is None or platform.machine() != "x86_64" or not (shutil.which(compiler) and abilities.is_file()):
        return []
    here = set(abilities.read_text().split())
    return [kind for kind, needed in VECTORS.items() if here.issuperset(needed.split())]


@pytest.mark.parametrize("kind", kinds())
def test_every_kind_of_vector_gives_the_same_bits(kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One kind is chosen when the library is loaded: the others that this processor has are compared here alone."""
    build = run_path(str(ROOT / "hatch_build.py"))
    flags = [*build["FLAGS"], "-DWIDE=", *[f"-m{ability}" for ability in VECTORS[kind].split()]]
    monkeypatch.setitem(build["failed"].__globals__, "FLAGS", flags)
    library = tmp_path / build["LIBRARY"]
    assert not build["failed"](ROOT / build["SOURCE"], library)
    spec = spec_from_file_location("zomirror.numerics._kernels", library)
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)

    def everything(d: int, dtype: Any) -> bytes:
        rng = np.random.default_rng(d)
        x, g, w = (rng.standard_normal(d).astype(dtype) for _ in range(3))
        stream, points = Stream(zm.methods.rademacher, key_of(d), 7, 11, d, np.dtype(dtype)), np.empty((11, d), dtype)
        stream.add(x, 0.1, 0, points)
        made = [points, stream.combine(rng.standard_normal(11)), np.array(sums(x) + sums(x, g))]
        for box in (Box(), Box(-0.5, 0.5)):
            box = box.astype(np.dtype(dtype))
            made.append(zm.methods.Entropy().step(box.project(x), g, 0.3, ElasticNet(0.1, 0.1), box))
        labels, moves = drawn(x, 5, 0.7, 0.5, key_of(d), 3)
        groups = Groups(labels, moves, 5, None, d)
        groups.add(x, 0.1, 0, points[:5])
        made += [labels, moves, points[:5], *mended(groups, rng.standard_normal(5), w, 0.5, 0.5)[:2]]
        return b"".join(np.asarray(one).tobytes() for one in made)

    for d in (5, 31, 32, 784, 1_001):
        for dtype in (np.float32, np.float64):
            with loops(None):
                wanted = everything(d, dtype)
            with loops(module):
                assert everything(d, dtype) == wanted, (kind, d, dtype)


@needs
def test_buffers_that_do_not_belong_together_are_refused() -> None:
    from zomirror.numerics import _kernels

    x, bits, at = np.zeros(16), np.zeros(64, np.uint8), (0,) * 6
    one, step, labels = np.zeros(1), (16.0, 1.0, 0.1, 0.1, 2.0), np.zeros(16, np.int64)
    table, core = np.zeros(256), np.zeros(256, np.uint64)
    wrong: list[Callable[[], object]] = [
        lambda: _kernels.add_signs(np.zeros((2, 16)), x, bits[:63], 1.0, *at, False, 8),
        lambda: _kernels.add_signs(np.zeros((2, 16)), x, bits[:62], 1.0, *at, False, 8),
        lambda: _kernels.add_signs(np.zeros((2, 17)), x, bits, 1.0, *at, False, 8),
        lambda: _kernels.add_signs(np.zeros((2, 16)), x[:0], bits, 1.0, *at, False, 8),
        lambda: _kernels.add_signs(np.zeros((2, 16)), x, bits, 1.0, *at, False, 0),
        lambda: _kernels.sum_signs(x, x[:2], bits[:63], 8),
        lambda: _kernels.sum_signs(x, x[:2], bits[:62], 8),
        lambda: _kernels.sum_signs(x, x[:0], bits, 8),
        lambda: _kernels.sum_signs(x, np.zeros(9, np.uint8), bits, 8),
        lambda: _kernels.sum_signs(np.zeros(17, np.uint8), x[:2], bits, 8),
        lambda: _kernels.sum_signs(x, x[:2], bits, 2),
        lambda: _kernels.entropy_step(x, x[:3], x, 0.0, 1.0, *step, 8),
        lambda: _kernels.entropy_step(x, x, one, 0.0, 1.0, *step, 8),
        lambda: _kernels.entropy_step(x, x, x, one, 1.0, *step, 8),
        lambda: _kernels.entropy_step(x, x, x, 0.0, x[:15], *step, 8),
        lambda: _kernels.entropy_step(x, x, x, 0.0, "1", *step, 8),  # type: ignore[arg-type]
        lambda: _kernels.entropy_step(x, x, x, 0.0, 1.0, *step, 3),
        lambda: _kernels.normals(x, table[:255], core, table, 0, 0, 0, 0, 0, 0, 1, 8),
        lambda: _kernels.normals(x, table, core, table[:255], 0, 0, 0, 0, 0, 0, 1, 8),
        lambda: _kernels.normals(x, table, core, table, 0, 0, 0, 0, 0, 0, 3, 8),
        lambda: _kernels.normals(x, table, core, table, 0, 0, 0, 0, 0, 0, -1, 8),
        lambda: _kernels.normals(x, table, core, table, 0, 0, 0, 0, 0, 0, 0, 8),
        lambda: _kernels.normals(x, table, core, table, 0, 0, 0, 0, 0, 0, 1, 2),
        lambda: _kernels.draw_groups(labels, x, x[:3], 0, 0, 0, 0, 0, 0, 4, 1.0, 0.5, 8),
        lambda: _kernels.draw_groups(labels[:3], x, x, 0, 0, 0, 0, 0, 0, 4, 1.0, 0.5, 8),
        lambda: _kernels.draw_groups(labels, x, x, 0, 0, 0, 0, 0, 0, 0, 1.0, 0.5, 8),
        lambda: _kernels.draw_groups(labels, x, x, 0, 0, 0, 0, 0, 0, 4, 1.0, 0.5, 2),
        lambda: _kernels.draw_groups(labels[:0], x[:0], x[:0], 0, 0, 0, 0, 0, 0, 4, 1.0, 0.5, 8),
        lambda: _kernels.add_groups(np.zeros((2, 16)), x, labels, x, None, 1.0, 0, 4),
        lambda: _kernels.add_groups(np.zeros((2, 15)), x, labels, x, None, 1.0, 0, 8),
        lambda: _kernels.add_groups(np.zeros((2, 16)), x, labels[:3], x, None, 1.0, 0, 8),
        lambda: _kernels.add_groups(np.zeros((2, 16)), x, labels, x, labels[:3], 1.0, 0, 8),
        lambda: _kernels.add_groups(np.zeros((2, 16)), x, labels, x, labels + 16, 1.0, 0, 8),
        lambda: _kernels.add_groups(np.zeros((2, 16)), x, labels, x, labels - 1, 1.0, 0, 8),
        lambda: _kernels.add_groups(np.zeros((2, 16)), x[:0], labels, x, None, 1.0, 0, 8),
        lambda: _kernels.mend_groups(x.copy(), x.copy(), labels + 1, x, x, one, 1.0, 1.0, 8),
        lambda: _kernels.mend_groups(x.copy(), x.copy(), labels - 1, x, x, one, 1.0, 1.0, 8),
        lambda: _kernels.mend_groups(x.copy(), x[:3].copy(), labels, x, x, one, 1.0, 1.0, 8),
        lambda: _kernels.mend_groups(x.copy(), x.copy(), labels[:3], x, x, one, 1.0, 1.0, 8),
        lambda: _kernels.mend_groups(x.copy(), x.copy(), labels, x, x[:3], one, 1.0, 1.0, 8),
        lambda: _kernels.mend_groups(x.copy(), x.copy(), labels, x, x, one[:0], 1.0, 1.0, 8),
        lambda: _kernels.mend_groups(x.copy(), x.copy(), labels, x, x, one, 1.0, 1.0, 3),
        lambda: _kernels.sums(x, one, 8),
        lambda: _kernels.sums(x, None, 5),
        lambda: _kernels.step_norms(x, one, 8),
        lambda: _kernels.step_norms(x, x, 5),
        lambda: _kernels.step_norms(bits[:17], bits[:17], 8),  # type: ignore[arg-type]
        lambda: _kernels.words(np.zeros(7, np.uint8), *at, 1, 0, 0),
        lambda: _kernels.words(np.zeros(8, np.uint64), *at, 3, 0, 2),
        lambda: _kernels.words(np.zeros(8, np.uint64), *at, 0, 0, 2),
        lambda: _kernels.words(np.zeros(8, np.uint64), *at, 2, 0, 5),
        lambda: _kernels.words(np.zeros(8, np.uint64), *at, 2, 0, -1),
    ]
    for call in wrong:
        with pytest.raises(ValueError, match="belong together"):
            call()


def test_only_plain_arrays_are_suited() -> None:
    x, crooked = np.zeros(6), np.zeros(8 * 6 + 1, np.uint8)[1:].view(np.float64)
    assert kernels.suited(x)
    assert kernels.suited(x, x[:3], np.zeros((2, 3)))
    for other in (np.zeros(12)[::2], crooked, np.zeros(6, np.float32), np.zeros((3, 2)).T, np.zeros(6, ">f8")):
        assert not kernels.suited(x, other), other.flags
        assert not kernels.suited(x, x, other)
    for first in (np.zeros(12)[::2], crooked, np.zeros((3, 2)).T, np.zeros(6, np.float16), np.zeros(6, ">f8")):
        assert not kernels.suited(first), first.flags


def test_another_version_is_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "zomirror.numerics._kernels", SimpleNamespace(REVISION=kernels.REVISION + 1))
    monkeypatch.setattr(zm, "_kernels", sys.modules["zomirror.numerics._kernels"], raising=False)
    assert kernels.found() is None


def test_without_them_the_package_works(monkeypatch: pytest.MonkeyPatch) -> None:
    code = (
        "import numpy as np, zomirror as zm; from zomirror.numerics import kernels; assert kernels.compiled is None; "
        "r = zm.minimize(lambda X: ((X - 1) ** 2).sum(axis=1), np.zeros(30), l1=0.1, budget=500, rng=0); "
        "print(r.fun.hex())"
    )
    environment = {**os.environ, kernels.VARIABLE: "0"}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    here = zm.minimize(lambda X: ((X - 1) ** 2).sum(axis=1), np.zeros(30), l1=0.1, budget=500, rng=0)
    assert float.fromhex(done.stdout.strip()) == here.fun
    with loops(None), pytest.raises(ImportError, match="compiled loops"):
        kernels.there()
