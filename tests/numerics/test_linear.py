"""Inner products and Cholesky solves: right, and the same bits with and without the compiler."""

from __future__ import annotations

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given

from zomirror.numerics import kernels
from zomirror.numerics.linear import convolve, inner, solve


def both_ways(monkeypatch: pytest.MonkeyPatch, call: object) -> list[bytes]:
    """The bytes of the result with the compiled loops, if there are any, and without them."""
    found = []
    for compiled in (kernels.found(), None):
        monkeypatch.setattr(kernels, "compiled", compiled)
        found.append(call().tobytes())  # type: ignore[operator]
    return found


@given(st.integers(1, 40), st.integers(0, 5), st.integers(0, 1000))
def test_equations_are_solved(n: int, m: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    root = rng.normal(size=(n, n + 3))
    A, B = root @ root.T + 0.1 * np.eye(n), rng.normal(size=(n, m))
    before = A.copy(), B.copy()
    X = solve(A, B)
    assert X is not None
    np.testing.assert_allclose(A @ X, B, atol=1e-7)
    np.testing.assert_array_equal(A, before[0])
    np.testing.assert_array_equal(B, before[1])


@pytest.mark.parametrize("bad", [[[1.0, 2.0], [2.0, 1.0]], [[0.0]], [[-1.0]], [[np.nan]], [[np.inf]]])
def test_a_matrix_that_is_not_positive_definite_has_no_solution(monkeypatch: pytest.MonkeyPatch, bad: object) -> None:
    for compiled in (kernels.found(), None):
        monkeypatch.setattr(kernels, "compiled", compiled)
        assert solve(np.array(bad), np.ones((len(np.array(bad)), 2))) is None


@pytest.mark.parametrize(("m", "n", "k"), [(1, 1, 1), (3, 16, 2), (4, 33, 7), (5, 784, 10), (0, 4, 3), (2, 0, 2)])
def test_products_are_right_and_have_the_same_bits(monkeypatch: pytest.MonkeyPatch, m: int, n: int, k: int) -> None:
    rng = np.random.default_rng(n)
    A, B = rng.normal(size=(m, n)), rng.normal(size=(k, n))
    np.testing.assert_allclose(inner(A, B), A @ B.T, rtol=1e-12, atol=1e-12)
    one, other = both_ways(monkeypatch, lambda: inner(A, B))
    assert one == other


@pytest.mark.parametrize("n", [1, 2, 17, 90])
def test_solutions_have_the_same_bits(monkeypatch: pytest.MonkeyPatch, n: int) -> None:
    rng = np.random.default_rng(n)
    root, B = rng.normal(size=(n, 2 * n)), rng.normal(size=(n, 10))
    one, other = both_ways(monkeypatch, lambda: solve(root @ root.T, B))
    assert one == other


@pytest.mark.skipif(kernels.found() is None, reason="no compiled loops")
def test_buffers_that_do_not_belong_together_are_refused() -> None:
    library = kernels.there()
    with pytest.raises(ValueError, match="belong together"):
        library.inner(np.empty((2, 2)), np.ones((2, 3)), np.ones((1, 3)), 3)
    with pytest.raises(ValueError, match="belong together"):
        library.cholesky(np.eye(3), np.ones((2, 1)), 3)


@pytest.mark.parametrize(("length", "after"), [(5, 1), (5, 3), (1, 4)])
def test_a_convolution_is_the_sum_over_neighbours_and_the_same_bits_without_the_compiler(
    monkeypatch: pytest.MonkeyPatch, length: int, after: int
) -> None:
    rng, taps = np.random.default_rng(0), np.array([1.0, 0.5, 0.1])
    rows = rng.normal(size=(2, 2 * length * after))
    found = []
    for compiled in (kernels.found(), None):
        monkeypatch.setattr(kernels, "compiled", compiled)
        found.append(convolve(rows, taps, length, after))
    assert found[0].tobytes() == found[1].tobytes()
    blocks = rows.reshape(-1, length, after)
    apart = np.abs(np.arange(length)[:, None] - np.arange(length))
    near = np.where(apart < taps.size, taps[np.minimum(apart, taps.size - 1)], 0.0)
    np.testing.assert_allclose(found[0].reshape(blocks.shape), np.einsum("ij,bja->bia", near, blocks))
