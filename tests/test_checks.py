"""Checks of arguments: what passes is normalised, what does not is named."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
import torch

import zomirror as zm
from zomirror import checks


@pytest.mark.parametrize("value", [3, 3.0, np.float32(3), np.float64(3), np.int8(3), np.uint64(3)])
def test_a_number_becomes_a_plain_float(value: Any) -> None:
    assert type(checks.number("a", value)) is float
    assert checks.positive("a", value) == checks.nonnegative("a", value) == 3.0


@pytest.mark.parametrize("value", [3, np.int8(3), np.uint64(3)])
def test_an_integer_becomes_a_plain_int(value: Any) -> None:
    assert type(checks.positive_integer("a", value)) is int


@pytest.mark.parametrize(
    ("check", "value", "error", "sentence"),
    [
        (checks.number, "1", TypeError, "expected a to be a number, got '1'"),
        (checks.number, np.True_, TypeError, "expected a to be a number, got np.True_"),
        (checks.number, np.nan, ValueError, "expected a to be finite, got nan"),
        (checks.positive, 0, ValueError, "expected a > 0, got 0"),
        (checks.positive, -1.5, ValueError, "expected a > 0, got -1.5"),
        (checks.nonnegative, -1e-300, ValueError, "expected a >= 0, got -1e-300"),
        (checks.positive_integer, 0, ValueError, "expected a >= 1, got 0"),
        (checks.positive_integer, 2.0, TypeError, "expected a to be an integer, got 2.0"),
        (checks.positive_integer, True, TypeError, "expected a to be an integer, got True"),
    ],
)
def test_what_is_refused(check: Any, value: Any, error: type[Exception], sentence: str) -> None:
    with pytest.raises(error, match=sentence) as caught:
        check("a", value)
    assert isinstance(caught.value, zm.errors.ZomirrorError)


@pytest.mark.parametrize(
    ("given", "dtype"),
    [
        ([1, 2], np.float64),
        ([True, False], np.float64),
        (np.ones(2, np.float16), np.float64),
        (np.ones(2, np.float32), np.float32),
        (np.ones(2, ">f4"), np.float64),
        (np.ones(2, np.longdouble), np.float64),
        ((1.0, 2.0), np.float64),
        (np.ones((4, 2))[:, 0], np.float64),
    ],
    ids=str,
)
def test_a_vector_is_copied_and_read_only(given: Any, dtype: type[Any]) -> None:
    vector = checks.vector("x0", given)
    assert vector.dtype == dtype
    assert vector.dtype.isnative
    assert vector.flags.c_contiguous
    assert not vector.flags.writeable
    assert not (isinstance(given, np.ndarray) and np.shares_memory(vector, given))


@pytest.mark.parametrize(
    ("given", "error", "sentence"),
    [
        ([], ValueError, r"expected x0 of shape \(d,\) with d >= 1, got shape \(0,\): give at least one coordinate"),
        (3.0, ValueError, r"got shape \(\): ravel it"),
        (np.ones((2, 3)), ValueError, r"got shape \(2, 3\): ravel it"),
        ([1.0, np.nan, np.inf], ValueError, "expected x0 to be finite, got nan at coordinates 1, 2"),
        ([1.0, -np.inf], ValueError, "expected x0 to be finite, got -inf at coordinate 1"),
        ([1j, 2], TypeError, "expected x0 to hold real numbers, got dtype complex128"),
        (["a", "b"], TypeError, "expected x0 to hold real numbers, got dtype <U1"),
        ([None, 1], TypeError, "expected x0 to hold real numbers, got dtype object"),
        ([[1], [2, 3]], TypeError, "expected x0 to be an array of numbers, got a ragged sequence"),
    ],
    ids=str,
)
def test_vectors_that_are_refused(given: Any, error: type[Exception], sentence: str) -> None:
    with pytest.raises(error, match=sentence) as caught:
        checks.vector("x0", given)
    assert isinstance(caught.value, zm.errors.ZomirrorError)


def test_long_lists_of_coordinates_are_cut() -> None:
    assert checks.some(np.array([3])) == "coordinate 3"
    assert checks.some(np.arange(5)) == "coordinates 0, 1, 2, 3, 4"
    assert checks.some(np.arange(12), "row") == "rows 0, 1, 2, 3, 4 and 7 more"


def test_words() -> None:
    assert checks.choice("returns", "best", ("last", "best")) == "best"
    for wrong in ("worst", None, 3, ["best"]):
        with pytest.raises(zm.errors.ArgumentError, match="expected returns to be one of 'last', 'best', got"):
            checks.choice("returns", wrong, ("last", "best"))


def test_seeds() -> None:
    assert checks.seed_of(7) == checks.seed_of(np.int64(7)) == 7
    assert checks.seed_of(2**80) == 2**80
    assert checks.seed_of(None) != checks.seed_of(None)
    a, b = (np.random.default_rng(3) for _ in range(2))
    assert checks.seed_of(a) == checks.seed_of(b)
    assert checks.seed_of(a) != checks.seed_of(np.random.default_rng(3)), "a Generator is used up by what it gives"


@pytest.mark.parametrize("rng", [True, 1.5, "0", [1], {}, np.random.RandomState(0), np.random.PCG64(0)], ids=type)
def test_seeds_of_other_types_are_refused(rng: Any) -> None:
    with pytest.raises(zm.errors.ArgumentTypeError, match="expected rng to be an integer, a numpy Generator or None"):
        checks.seed_of(rng)


def test_a_negative_seed_is_refused() -> None:
    with pytest.raises(zm.errors.ArgumentError, match="expected rng >= 0, got -1"):
        checks.seed_of(-1)


FOUR = [0.1, 0.2, 0.3, 0.4]
MASKED = np.ma.masked_array(FOUR, [False, True, False, False])


class Mute(int):
    """A number that cannot be shown or compared."""

    def __repr__(self) -> str:
        raise RuntimeError("no repr")

    __lt__ = __gt__ = __index__ = __int__ = __float__ = __repr__  # type: ignore[assignment]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"x0": torch.tensor(FOUR, requires_grad=True)}, r"Tensor, which numpy cannot read .*: give \.detach\(\)"),
        ({"x0": torch.tensor(FOUR, dtype=torch.bfloat16)}, r"Tensor, which numpy cannot read .*: give \.detach\(\)"),
        ({"x0": torch.tensor(FOUR, device="meta")}, r"Tensor, which numpy cannot read"),
        ({"x0": MASKED}, "some entries are masked: fill them"),
        ({"stochastic": np.array([True, False])}, "expected stochastic to be True or False, got array"),
        ({"stochastic": 1}, "expected stochastic to be True or False, got 1"),
        ({"vectorized": np.array([True, False])}, "expected vectorized to be True or False"),
        ({"budget": np.timedelta64(80)}, "expected budget to be an integer"),
        ({"l1": np.timedelta64(1)}, "expected l1 to be a number"),
        ({"l1": Mute(-1)}, "expected l1 >= 0, got -1.0"),
        ({"budget": Mute(0)}, "expected budget >= 1, got 0"),
        ({"l1": 10**400}, "expected l1 to fit into a float"),
        ({"bounds": itertools.count()}, "expected bounds with at most 4 items, got more"),
        ({"bounds": MASKED}, "expected bounds"),
    ],
    ids=range(14),
)
def test_arguments_of_odd_types_are_refused_in_a_sentence(options: dict[str, Any], message: str) -> None:
    given: dict[str, Any] = {"fun": lambda X: X[:, 0], "x0": FOUR, "budget": 80} | options
    with pytest.raises((zm.errors.ArgumentError, zm.errors.ArgumentTypeError), match=message):
        zm.minimize(**given)


@pytest.mark.parametrize(
    "signed", [np.array([True, False]), np.ones(4), torch.tensor([True, True]), "yes"], ids=range(4)
)
def test_signed_is_true_or_false(signed: Any) -> None:
    for make in (lambda: zm.Vector(signed=signed), lambda: zm.explain(lambda X: X, FOUR, signed=signed)):
        with pytest.raises(zm.errors.ArgumentTypeError, match="expected signed to be True or False"):
            make()
    numpys: Any = np.bool_(True)
    assert zm.Vector(signed=numpys).signed


class Unreadable:
    """An object whose conversion fails, as that of a tensor with a gradient does."""

    def __array__(self, *_: object, **__: object) -> None:
        raise RuntimeError("cannot be converted")


def test_what_numpy_cannot_read_is_refused_in_a_sentence() -> None:
    for ask in (
        lambda: zm.minimize(lambda X: X[:, 0], Unreadable()),
        lambda: zm.explain(lambda X: X, Unreadable()),
        lambda: zm.minimize(lambda X: X[:, 0], np.zeros(2), bounds=(Unreadable(), Unreadable())),
    ):
        with pytest.raises(zm.errors.ArgumentTypeError, match=r"Unreadable, which numpy cannot read .*: convert it"):
            ask()
