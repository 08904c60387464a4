"""Direction streams: their moments, and that a row is a function of (key, t, j) alone."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import zomirror as zm
from tests.conftest import DIRECTIONS
from zomirror.methods.directions import Directions, Key, key_of, uniform
from zomirror.numerics.arrays import Array

pytestmark = pytest.mark.usefixtures("loops")

KEY = key_of(0)


def rows(
    directions: Directions, count: int, d: int, *, key: Key = KEY, t: int = 0, start: int = 0, dtype: Any = np.float64
) -> Array:
    out = np.empty((count, d), dtype)
    directions.fill(out, key, t, start, 1.0)
    return out


@pytest.mark.parametrize("directions", DIRECTIONS, ids=str)
@given(
    d=st.integers(1, 600),
    cuts=st.sets(st.integers(1, 11), max_size=4),
    t=st.integers(0, 2**40),
    start=st.integers(0, 2**40),
    dtype=st.sampled_from([np.float32, np.float64]),
)
def test_rows_do_not_depend_on_their_blocks(
    directions: Directions, d: int, cuts: set[int], t: int, start: int, dtype: Any
) -> None:
    whole = rows(directions, 12, d, t=t, start=start, dtype=dtype)
    edges = [0, *sorted(cuts), 12]
    for low, high in pairwise(edges):
        part = rows(directions, high - low, d, t=t, start=start + low, dtype=dtype)
        assert part.tobytes() == whole[low:high].tobytes()


@given(
    d=st.integers(1, 3_000),
    first=st.integers(0, 11),
    width=st.integers(1, 3_000),
    dtype=st.sampled_from([np.float32, np.float64]),
)
def test_columns_made_alone_are_the_same_bits(d: int, first: int, width: int, dtype: Any) -> None:
    first = min(256 * first, 256 * ((d - 1) // 256))
    width = min(width, d - first)
    part = np.empty((3, width), dtype)
    zm.methods.rademacher.fill_columns(part, KEY, 3, 5, 0.5, first, d)
    whole = np.empty((3, d), dtype)
    zm.methods.rademacher.fill(whole, KEY, 3, 5, 0.5)
    assert part.tobytes() == np.ascontiguousarray(whole[:, first : first + width]).tobytes()


@pytest.mark.parametrize("directions", DIRECTIONS, ids=str)
def test_rows_made_by_many_threads_are_the_same(directions: Directions) -> None:
    wanted = rows(directions, 200, 50)
    with ThreadPoolExecutor(4) as pool:
        parts = list(pool.map(lambda j: rows(directions, 1, 50, start=j), range(200)))
    assert np.concatenate(parts).tobytes() == wanted.tobytes()


@pytest.mark.parametrize("directions", DIRECTIONS, ids=str)
def test_rows_written_into_a_view_are_the_same(directions: Directions) -> None:
    wide = np.full((6, 40), np.nan)
    directions.fill(wide[:, 8:24], KEY, 3, 5, 0.5)
    out = np.empty((6, 16))
    directions.fill(out, KEY, 3, 5, 0.5)
    assert (wide[:, 8:24] == out).all()
    assert np.isnan(wide[:, :8]).all()
    assert np.isnan(wide[:, 24:]).all()


@pytest.mark.parametrize("directions", DIRECTIONS, ids=str)
def test_iterations_rows_and_keys_are_uncorrelated(directions: Directions) -> None:
    n, d = 4_000, 4
    u = rows(directions, n, d) * np.sqrt(directions.delta(d))
    others = {
        "the next iteration": rows(directions, n, d, t=1),
        "the next row": rows(directions, n, d, start=1),
        "the next block": rows(directions, n, d, start=n),
        "another seed": rows(directions, n, d, key=key_of(1)),
    }
    for name, v in others.items():
        v = v * np.sqrt(directions.delta(d))
        correlation = (u[:, :, None] * v[:, None, :]).mean(axis=0) * np.sqrt(n)
        # Sixteen normal numbers.
        assert np.abs(correlation).max() < 4.5 * np.sqrt(d if directions is zm.methods.coordinate else 1), name


@pytest.mark.parametrize("directions", DIRECTIONS, ids=str)
def test_directions_are_symmetric(directions: Directions) -> None:
    u = rows(directions, 20_000, 3)
    error = u.std(axis=0) / np.sqrt(len(u))
    assert (np.abs(u.mean(axis=0)) < 4.5 * error).all()


def test_rademacher_is_signs() -> None:
    from scipy import stats

    u = rows(zm.methods.rademacher, 2000, 13)
    assert set(np.unique(u)) == {-1.0, 1.0}
    counts = np.unique(u[:, :6] > 0, axis=0, return_counts=True)[1]
    assert counts.size == 64, "every pattern of six signs appears"
    assert stats.chisquare(counts).pvalue > 1e-3


def test_gaussian_is_normal() -> None:
    from scipy import stats

    u = rows(zm.methods.gaussian, 2000, 10).ravel()
    assert stats.kstest(u, "norm").pvalue > 1e-3


def test_sphere_has_length_one_and_no_favoured_direction() -> None:
    from scipy import stats

    u = rows(zm.methods.sphere, 20_000, 3)
    np.testing.assert_allclose(np.linalg.norm(u, axis=1), 1, rtol=1e-12)
    # In three dimensions each coordinate of a uniform point of the sphere is uniform (Archimedes).
    assert stats.kstest(u[:, 0], stats.uniform(-1, 2).cdf).pvalue > 1e-3


def test_coordinate_is_one_signed_unit_vector() -> None:
    from scipy import stats

    u = rows(zm.methods.coordinate, 6000, 5)
    assert (np.abs(u).sum(axis=1) == 1).all()
    counts = np.array([(u == sign).sum(axis=0) for sign in (-1, 1)]).ravel()
    assert stats.chisquare(counts).pvalue > 1e-3


def test_deltas() -> None:
    assert [directions.delta(7) for directions in DIRECTIONS] == [1, 1, 7, 7]


def test_picks_are_uniform_and_apart_from_the_rows() -> None:
    from scipy import stats

    picks = np.array([uniform(KEY, t) for t in range(4000)])
    assert ((picks >= 0) & (picks < 1)).all()
    assert stats.kstest(picks, "uniform").pvalue > 1e-3
    assert uniform(KEY, 5) == uniform(KEY, 5) != uniform(key_of(1), 5)


def test_streams_are_what_they_were() -> None:
    """A stored run must be continued with the same directions, whatever the version: these numbers never change."""
    assert key_of(0) == (15793235383387715774, 12390638538380655177)
    assert rows(zm.methods.rademacher, 1, 8, t=1, start=2)[0].tolist() == GOLDEN_SIGNS
    np.testing.assert_array_equal(rows(zm.methods.gaussian, 1, 3, t=1, start=2)[0], GOLDEN_NORMALS)
    assert rows(zm.methods.coordinate, 1, 5, t=1, start=2)[0].tolist() == GOLDEN_COORDINATE
    assert uniform(KEY, 7) == GOLDEN_PICK


GOLDEN_SIGNS = [-1, 1, 1, -1, 1, -1, 1, 1]
GOLDEN_NORMALS = [-1.0454292035824202, -0.3562850734928777, -0.8150368725094166]
GOLDEN_COORDINATE = [0, -1, 0, 0, 0]
GOLDEN_PICK = 0.15287214134000948
