"""Sums that are kept: those of the points of a step, and never of others."""

from __future__ import annotations

import weakref
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from zomirror.numerics import arrays, kernels
from zomirror.numerics.arrays import KEPT, keep, norm1, norm2, sums


def frozen(values: Any) -> Any:
    point = np.array(values, float)
    point.flags.writeable = False
    return point


def test_kept_sums_are_those_of_these_points() -> None:
    points = [frozen([i, -2.0 * i, 0.5]) for i in range(4)]
    for i, x in enumerate(points):
        for j, y in enumerate(points):
            keep(x, y)
            for k, z in enumerate(points):
                assert sums(z) == (3 * k + 0.5, 5 * k**2 + 0.25)
                assert norm1(x, z) == 3 * abs(i - k)
                assert norm2(z, y) == pytest.approx(5**0.5 * abs(j - k))


def test_a_step_makes_each_sum_once(monkeypatch: pytest.MonkeyPatch) -> None:
    made, plain = [], arrays._sums

    def counted(x: Any, y: Any) -> tuple[float, float]:
        made.append((x, y))
        return plain(x, y)

    monkeypatch.setattr(kernels, "compiled", None)
    monkeypatch.setattr(arrays, "_sums", counted)
    two_steps()
    assert len(made) == 5, "of x, y, z, and of two pairs"


@pytest.mark.skipif(kernels.compiled is None, reason="this installation has no compiled loops")
def test_a_step_is_one_compiled_call(monkeypatch: pytest.MonkeyPatch) -> None:
    calls, compiled = [], kernels.there()

    def counted(name: str) -> Any:
        def call(*given: Any) -> Any:
            calls.append(name)
            return getattr(compiled, name)(*given)

        return call

    monkeypatch.setattr(kernels, "compiled", SimpleNamespace(sums=counted("sums"), step_sums=counted("step_sums")))
    two_steps()
    assert calls == ["step_sums", "sums", "step_sums"], "the sums of the first x are nobody's yet"


def two_steps() -> None:
    x, y, z = (frozen(np.full(5, i)) for i in range(3))
    for one, other in ((x, y), (y, z)):
        keep(one, other)
        norm1(one, other), norm2(one, other), norm1(one), norm1(other), sums(other)


def test_what_was_made_writable_again_is_summed_anew() -> None:
    x, y = frozen([1.0, 1.0]), frozen([2.0, 2.0])
    keep(x, y)
    x.flags.writeable = True
    x[0] = 5.0
    assert sums(x) == (6.0, 26.0)
    assert norm1(x, y) == 4.0


def test_large_points_are_not_kept_alive() -> None:
    x, y = (frozen(np.full(KEPT + 1, i)) for i in range(2))
    keep(x, y)
    gone = weakref.ref(y)
    del y
    assert gone() is None
