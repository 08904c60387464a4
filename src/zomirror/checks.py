"""Checks of arguments; each error says what was expected, what was given, and what to do."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sized
from contextlib import contextmanager
from itertools import islice
from typing import Any

import numpy as np
from numpy.typing import NDArray

from zomirror.errors import ArgumentError, ArgumentTypeError, ZomirrorError
from zomirror.numerics.arrays import Array, Indices

NOT_NUMBERS = (bool, np.bool_, np.timedelta64)
"""Types that Python or numpy derives from the integers."""


def number(name: str, value: object) -> float:
    """A finite real number."""
    if isinstance(value, NOT_NUMBERS) or not isinstance(value, int | float | np.integer | np.floating):
        raise ArgumentTypeError(f"expected {name} to be a number, got {shown(value)}")
    try:
        if isinstance(value, float):  # a subclass may override the conversion
            checked = float.__float__(value)
        else:
            checked = int.__float__(value) if isinstance(value, int) else float(value)
    except OverflowError:
        raise ArgumentError(f"expected {name} to fit into a float, got {shown(value)}") from None
    if not math.isfinite(checked):
        raise ArgumentError(f"expected {name} to be finite, got {checked}")
    return checked


def positive(name: str, value: object) -> float:
    """A finite number > 0."""
    if (checked := number(name, value)) <= 0:
        raise ArgumentError(f"expected {name} > 0, got {checked}")
    return checked


def nonnegative(name: str, value: object) -> float:
    """A finite number >= 0."""
    if (checked := number(name, value)) < 0:
        raise ArgumentError(f"expected {name} >= 0, got {checked}")
    return checked


def positive_integer(name: str, value: object) -> int:
    """An integer >= 1."""
    return integer(name, value, 1)


def integer(name: str, value: object, least: int) -> int:
    """An integer >= `least`."""
    if isinstance(value, NOT_NUMBERS) or not isinstance(value, int | np.integer):
        raise ArgumentTypeError(f"expected {name} to be an integer, got {shown(value)}")
    checked = int.__int__(value) if isinstance(value, int) else int(value)  # a subclass may override the conversion
    if checked < least:
        raise ArgumentError(f"expected {name} >= {least}, got {shown(checked)}")
    return checked


def flag(name: str, value: object) -> bool:
    """True or False."""
    if not isinstance(value, bool | np.bool_):
        raise ArgumentTypeError(f"expected {name} to be True or False, got {shown(value)}")
    return bool(value)


def text(name: str, value: object) -> str:
    """A string."""
    if not isinstance(value, str):
        raise ArgumentTypeError(f"expected {name} to be a string, got {shown(value)}")
    return str.__str__(value)


def choice(name: str, value: object, allowed: tuple[str, ...]) -> str:
    """One of the allowed words."""
    if not isinstance(value, str) or str.__str__(value) not in allowed:
        raise ArgumentError(f"expected {name} to be one of {', '.join(map(repr, allowed))}, got {shown(value)}")
    return str.__str__(value)


def shown(value: object, most: int = 200) -> str:
    """The repr of a wrong argument for an error message: cut short, or its type where it has none."""
    try:
        found = repr(value)
    except Exception:  # noqa: BLE001 - the caller's own method, or an integer of too many digits
        found = ""
    if not found:
        return f"an object of type {type(value).__name__}"
    return found if len(found) <= most else f"{found[:most]}..."


@contextmanager
def reading(name: str, value: object) -> Iterator[None]:
    """Turn what the special methods of an argument raise while it is read into an ArgumentTypeError."""
    try:
        yield
    except (ZomirrorError, ImportError):
        raise
    except Exception as error:
        raise ArgumentTypeError(
            f"expected {name} that can be read, got {shown(value)} ({type(error).__name__} while reading it)"
        ) from error


def items(name: str, value: object, most: int | None = None) -> list[Any]:
    """The items of an iterable: at most `most`, by default its length, or a million if it has none."""
    with reading(name, value):
        if not isinstance(value, Iterable):
            raise ArgumentTypeError(f"expected {name} to be a sequence, got {shown(value)}")
        if most is None:
            most = len(value) if isinstance(value, Sized) else 10**6
        found = list(islice(iter(value), most + 1))
    if len(found) > most:
        raise ArgumentError(f"expected {name} with at most {most} items, got more: it may have no end")
    return found


def as_array(value: object) -> NDArray[Any]:
    """`value` as numpy reads it.

    TypeError if it cannot be read, or if entries are masked: numpy would use the numbers below the mask.
    """
    if isinstance(value, np.ndarray):
        if np.ma.is_masked(value):
            raise TypeError("some entries are masked: fill them")
        return np.asarray(value)
    try:
        given = np.asarray(value)
    except ValueError:
        raise TypeError("a ragged sequence") from None
    except Exception as error:
        # A tensor that requires a gradient or lives on another device, or any object with an __array__ that fails.
        tensor = type(value).__module__ == "torch"
        remedy = "give .detach().cpu().float().numpy()" if tensor else "convert it to an array first"
        raise TypeError(
            f"{type(value).__name__}, which numpy cannot read ({type(error).__name__}): {remedy}"
        ) from error
    return given


def real_array(name: str, value: object) -> Array:
    """An array of real numbers; not copied if `value` is already an array."""
    try:
        given = as_array(value)
    except TypeError as error:
        raise ArgumentTypeError(f"expected {name} to be an array of numbers, got {error}") from error.__cause__
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
    if isinstance(rng, NOT_NUMBERS) or not isinstance(rng, int | np.integer):
        raise ArgumentTypeError(f"expected rng to be an integer, a numpy Generator or None, got {shown(rng)}")
    return integer("rng", rng, 0)
