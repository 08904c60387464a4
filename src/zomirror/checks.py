"""Checks of arguments; each error says what was expected, what was given, and what to do."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from zomirror.errors import ArgumentError, ArgumentTypeError
from zomirror.numerics.arrays import Array, Indices


def number(name: str, value: object) -> float:
    """A finite real number."""
    if isinstance(value, bool | np.bool_) or not isinstance(value, int | float | np.integer | np.floating):
        raise ArgumentTypeError(f"expected {name} to be a number, got {value!r}")
    if not math.isfinite(value):
        raise ArgumentError(f"expected {name} to be finite, got {value!r}")
    return float(value)


def positive(name: str, value: object) -> float:
    """A finite number > 0."""
    if (checked := number(name, value)) <= 0:
        raise ArgumentError(f"expected {name} > 0, got {value!r}")
    return checked


def nonnegative(name: str, value: object) -> float:
    """A finite number >= 0."""
    if (checked := number(name, value)) < 0:
        raise ArgumentError(f"expected {name} >= 0, got {value!r}")
    return checked


def positive_integer(name: str, value: object) -> int:
    """An integer >= 1."""
    if isinstance(value, bool | np.bool_) or not isinstance(value, int | np.integer):
        raise ArgumentTypeError(f"expected {name} to be an integer, got {value!r}")
    if value < 1:
        raise ArgumentError(f"expected {name} >= 1, got {value}")
    return int(value)


def choice(name: str, value: object, allowed: tuple[str, ...]) -> str:
    """One of the allowed words."""
    if not isinstance(value, str) or value not in allowed:
        raise ArgumentError(f"expected {name} to be one of {', '.join(map(repr, allowed))}, got {value!r}")
    return value


def real_array(name: str, value: object) -> Array:
    """An array of real numbers; not copied if `value` is already an array."""
    try:
        given = np.asarray(value)
    except ValueError:
        raise ArgumentTypeError(f"expected {name} to be an array of numbers, got a ragged sequence") from None
    except Exception as error:
        # A tensor that requires a gradient or lives on another device, or any object with an __array__ that fails.
        raise ArgumentTypeError(
            f"expected {name} to be an array of numbers, got {type(value).__name__}, which numpy cannot read "
            f"({type(error).__name__}): convert it to an array first"
        ) from error
    if given.dtype.kind not in "biuf":
        raise ArgumentTypeError(f"expected {name} to hold real numbers, got dtype {given.dtype}")
    return given


def vector(name: str, value: object) -> Array:
    """A read-only copy of a finite vector with d >= 1: float32 is kept, everything else becomes float64."""
    given = real_array(name, value)
    if given.ndim != 1 or given.size == 0:
        remedy = "give at least one coordinate" if given.size == 0 else "ravel it"
        raise ArgumentError(f"expected {name} of shape (d,) with d >= 1, got shape {given.shape}: {remedy}")
    copied: Array = np.array(given, dtype=float_dtype(given.dtype), copy=True)
    if not np.isfinite(copied).all():
        raise ArgumentError(
            f"expected {name} to be finite, got {copied[~np.isfinite(copied)][0]} at "
            f"{some(np.flatnonzero(~np.isfinite(copied)))}"
        )
    copied.flags.writeable = False
    return copied


def float_dtype(dtype: np.dtype[Any]) -> type[np.float32] | type[np.float64]:
    """float32 for float32, float64 for everything else."""
    return np.float32 if dtype == np.float32 else np.float64


def some(indices: Indices, noun: str = "coordinate", most: int = 5) -> str:
    """`coordinates 1, 2, 3, 4, 5 and 7 more`, for error messages."""
    shown = ", ".join(str(i) for i in indices[:most])
    more = f" and {indices.size - most} more" if indices.size > most else ""
    return f"{noun}{'s' if indices.size > 1 else ''} {shown}{more}"


def seed_of(rng: object) -> int:
    """The seed of an `rng` argument: an integer is the seed, a Generator draws one, None draws a fresh one."""
    if rng is None:
        return int(np.random.SeedSequence().generate_state(1, np.uint64)[0])
    if isinstance(rng, np.random.Generator):
        return int(rng.integers(2**63))
    if isinstance(rng, bool | np.bool_) or not isinstance(rng, int | np.integer):
        raise ArgumentTypeError(f"expected rng to be an integer, a numpy Generator or None, got {rng!r}")
    if rng < 0:
        raise ArgumentError(f"expected rng >= 0, got {rng}")
    return int(rng)
