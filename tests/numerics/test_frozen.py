"""Frozen objects with other values in some fields: as dataclasses.replace has them."""

from __future__ import annotations

from dataclasses import FrozenInstanceError, dataclass, fields, replace
from typing import Any

import numpy as np
import pytest

import zomirror as zm
from zomirror.numerics.frozen import changed


@dataclass(frozen=True)
class Point:
    x: float
    y: float = 2.0


def test_it_is_what_replace_gives_and_leaves_the_old_one_alone() -> None:
    one = Point(1.0)
    assert changed(one, y=3.0) == replace(one, y=3.0) == Point(1.0, 3.0)
    assert changed(one) == one == Point(1.0)
    with pytest.raises(FrozenInstanceError):
        changed(one, y=3.0).y = 4.0  # type: ignore[misc]


def test_a_field_that_is_not_there_is_refused() -> None:
    with pytest.raises(TypeError, match="fields of Point, got z"):
        changed(Point(1.0), z=3.0)  # type: ignore[call-arg]


def test_every_state_of_a_run_can_be_changed() -> None:
    """None of its parts has slots, or anything that replace would compute anew."""
    opt = zm.Optimizer(np.full(30, 0.5), l1=0.1, bounds=(0, 1), rng=0)
    while opt.nfev < 3_000:
        opt.tell(np.square(opt.ask() - 0.2).sum(axis=1))
    attempts = opt.state.memory
    findings = attempts.current.state.memory
    parts: tuple[Any, ...] = (
        opt.state,
        opt.state.last,
        attempts,
        attempts.current,
        attempts.current.state,
        findings,
        findings.descent,
        findings.descent.memory,
        findings.stretch,
    )
    for part in parts:
        again = changed(part)
        assert all(getattr(again, field.name) is getattr(part, field.name) for field in fields(part))
        assert not hasattr(type(part), "__post_init__")
