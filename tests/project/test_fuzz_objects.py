"""The public functions, called with objects that are not what they seem: a result or an error of ours, within 10 s.

The second generator of `make fuzz`: numpy scalars of every type, 0-d, masked and structured arrays, pandas and polars
objects, torch tensors, objects whose special methods raise or lie, functions that change their mind. Every call has a
number, and `ZOMIRROR_FUZZ_CALL=minimize:17` makes that one alone. ZOMIRROR_FUZZ=10000 makes 10,000 calls in all, and
ZOMIRROR_FUZZ_SEED=1 makes others.
"""

from __future__ import annotations

import importlib.util
import itertools
import os
import random
import sys
import time
import warnings
from collections import OrderedDict, UserDict, UserList, deque
from collections.abc import Callable, Iterator
from decimal import Decimal
from enum import IntEnum
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import zomirror as zm
from zomirror import classifiers

CALLS = int(os.environ.get("ZOMIRROR_FUZZ", "400"))
SEED = os.environ.get("ZOMIRROR_FUZZ_SEED", "0")
ONLY = os.environ.get("ZOMIRROR_FUZZ_CALL", "")
LONGEST = 10.0
"""Seconds of one call: measured as processor time, so that a busy machine does not count."""

Thing = Callable[[], Any]

# --- numbers and arrays ----------------------------------------------------------------------------------------------

SCALARS = [
    *(np.bool_, np.int8, np.int16, np.int32, np.int64, np.uint8, np.uint16, np.uint32, np.uint64, np.longlong),
    *(np.float16, np.float32, np.float64, np.longdouble, np.complex64, np.complex128, np.clongdouble),
    *(np.str_, np.bytes_, np.object_),
]


class Level(IntEnum):
    """An integer that is also an enumeration."""

    LOW = 1


def numpy_things() -> list[Thing]:
    found: list[Thing] = []
    for kind in SCALARS:
        for value in (0, 1, 3):
            found += [partial(kind, value)]
            found += [partial(np.array(value).astype, kind)]  # 0-d
            found += [partial(np.array([value]).astype, kind)]
            found += [partial(np.full(4, value).astype, kind)]
    found += [
        lambda: np.float64("nan"),
        lambda: np.float32("inf"),
        lambda: np.float16("-inf"),
        lambda: np.longdouble("0.1"),
        lambda: np.uint64(2**64 - 1),
        lambda: np.datetime64("2026-01-01"),
        lambda: np.timedelta64(3, "s"),
        lambda: np.array(["2026-01-01"] * 4, "datetime64[D]"),
        lambda: np.void(b"abc"),
        lambda: np.ma.masked,
        lambda: np.ma.masked_array([0.1, 0.2, 0.3, 0.4], [False, True, False, False]),
        lambda: np.ma.masked_array([0.1, 0.2, 0.3, 0.4], [False] * 4),
        lambda: np.ma.masked_array([0.1, 0.2, 0.3, np.nan], [True] * 4),
        lambda: np.ma.masked_array([1, 2], [False, True], fill_value=7),
        lambda: np.zeros(4, [("a", "f8"), ("b", "i4")]),
        lambda: np.rec.array([(1.0, 2)], dtype=[("a", "f8"), ("b", "i4")]),
        lambda: np.matrix([[0.1, 0.2, 0.3, 0.4]]),
        lambda: np.full(4, 0.25, ">f8"),
        lambda: np.full(8, 0.25)[::2],
        lambda: np.full((2, 4), 0.25)[:, ::-1].T,
        lambda: np.broadcast_to(np.float64(0.25), (4,)),
        lambda: np.zeros((0, 4)),
        lambda: np.zeros((4, 0)),
        lambda: np.zeros((1,) * 30),
        lambda: np.array([[0.1], [0.2, 0.3]], object),
        lambda: np.array([0.1, None, 0.3, 0.4]),
        lambda: np.array([0.1, 1e400, -0.0, 5e-324]),
        lambda: np.array("text"),
        lambda: np.dtype("f8"),
        lambda: np.float64,
        lambda: np.random.default_rng(0),
        lambda: np.random.RandomState(0),
        lambda: np.nditer(np.zeros(4)),
        lambda: np.array([0.25] * 4).view(Odd),
        lambda: np.array([0.25] * 4).data,
        lambda: np.array([True, False, True, False]),
    ]
    return found


class Odd(np.ndarray):
    """An array whose methods lie."""

    def __bool__(self) -> bool:
        raise RuntimeError("no")

    def __len__(self) -> int:
        return 99

    def __repr__(self) -> str:
        raise RuntimeError("no")

    def sum(self, *_: Any, **__: Any) -> Any:
        return "sum"

    def astype(self, *_: Any, **__: Any) -> Any:
        return None


def python_things() -> list[Thing]:
    return [
        lambda: None,
        lambda: True,
        lambda: 10**400,
        lambda: -(10**30),
        lambda: 2**63,
        lambda: 1e308,
        lambda: float("nan"),
        lambda: -0.0,
        lambda: 1j,
        lambda: Decimal("0.1"),
        lambda: Fraction(1, 3),
        lambda: Level.LOW,
        lambda: "",
        lambda: "0.1",
        lambda: "a" * 10_000,
        lambda: "\0\ud800",
        lambda: b"bytes",
        lambda: bytearray(b"1234"),
        lambda: memoryview(b"1234"),
        list,
        tuple,
        dict,
        set,
        lambda: [0.25] * 4,
        lambda: [[0.25] * 4] * 2,
        lambda: [[0.25], [1, 2]],
        lambda: [(0, 1)] * 4,
        lambda: range(4),
        lambda: deque([0.25] * 4),
        lambda: UserList([0.25] * 4),
        lambda: UserDict(a=1),
        lambda: OrderedDict(a=1),
        lambda: iter([0.25] * 4),
        lambda: itertools.count(),
        lambda: itertools.repeat((0, 1)),
        lambda: (x for x in [0.1, 0.2, 0.3, 0.4]),
        lambda: slice(4),
        lambda: Ellipsis,
        lambda: NotImplemented,
        lambda: object(),
        lambda: object,
        lambda: len,
        lambda: Path("/nowhere"),
        lambda: Path("/proc/self/mem"),
        lambda: sys,
        lambda: Exception("an exception"),
        lambda: recursive(),
    ]


def recursive() -> list[Any]:
    """A list that holds itself."""
    found: list[Any] = [0.25]
    found.append(found)
    return found


# --- frames and tensors ----------------------------------------------------------------------------------------------


class Frame:
    """A stand-in for a polars object where polars is not installed: it has columns, and numpy reads it slowly."""

    columns = ("a", "b", "c", "d")
    shape = (1, 4)

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        return np.full((1, 4), 0.25, dtype or np.float64)

    def __len__(self) -> int:
        return 1

    def __getitem__(self, key: Any) -> Any:
        if isinstance(key, int) and key >= 1:
            raise IndexError(key)
        return [0.25] * 4

    def __eq__(self, other: object) -> Any:
        return Frame()

    def __bool__(self) -> bool:
        raise TypeError("the truth value of a frame is ambiguous")

    __hash__ = None  # type: ignore[assignment]


def frame_things() -> list[Thing]:
    found: list[Thing] = [Frame, lambda: [Frame()], lambda: (Frame(), Frame())]
    if importlib.util.find_spec("pandas"):
        import pandas as pd  # type: ignore[import-untyped,unused-ignore]

        found += [
            lambda: pd.Series([0.1, 0.2, 0.3, 0.4]),
            lambda: pd.Series([0.1, 0.2, 0.3, 0.4], index=list("abcd"), dtype="Float64"),
            lambda: pd.Series([0.1, None, 0.3, 0.4], dtype="Float64"),
            lambda: pd.Series(list("abcd"), dtype="category"),
            lambda: pd.Series([True, False, True, False]),
            lambda: pd.DataFrame({name: [0.25, 0.5] for name in "abcd"}),
            lambda: pd.DataFrame({"a": [1, 2], "b": ["x", "y"]}),
            lambda: pd.DataFrame(),
            lambda: pd.DataFrame({name: [0.25] for name in "abcd"}).iloc[0],
            lambda: pd.Index(list("abcd")),
            lambda: pd.MultiIndex.from_product([[1, 2], [3, 4]]),
            lambda: pd.NA,
            lambda: pd.NaT,
            lambda: pd.Timestamp("2026-01-01"),
            lambda: pd.Categorical(list("abca")),
            lambda: pd.array([1, None, 3, 4], dtype="Int64"),
        ]
    if importlib.util.find_spec("polars"):
        import polars as pl

        found += [
            lambda: pl.Series([0.1, 0.2, 0.3, 0.4]),
            lambda: pl.Series("a", [0.1, None, 0.3, 0.4]),
            lambda: pl.Series(list("abcd")),
            lambda: pl.Series([True, False, True, False]),
            lambda: pl.DataFrame({name: [0.25, 0.5] for name in "abcd"}),
            lambda: pl.DataFrame({"a": [1, 2], "b": ["x", "y"]}),
            lambda: pl.DataFrame(),
            lambda: pl.DataFrame({name: [0.25] for name in "abcd"}).lazy(),
            lambda: pl.col("a") > 1,
            lambda: pl.Series([[0.1], [0.2, 0.3]]),
        ]
    return found


def tensor_things() -> list[Thing]:
    four = [0.1, 0.2, 0.3, 0.4]
    return [
        lambda: torch.tensor(four),
        lambda: torch.tensor(four, requires_grad=True),
        lambda: torch.tensor(four, requires_grad=True) * 2,
        lambda: torch.tensor(four, dtype=torch.bfloat16),
        lambda: torch.tensor(four, dtype=torch.float16),
        lambda: torch.tensor(four, device="meta"),
        lambda: torch.tensor(four).to_sparse(),
        lambda: torch.tensor([four]).T,
        lambda: torch.tensor(four, dtype=torch.complex64),
        lambda: torch.tensor(four, dtype=torch.complex64).conj(),
        lambda: torch.tensor([1, 2, 3, 4]),
        lambda: torch.tensor([True, False, True, False]),
        lambda: torch.tensor(1),
        lambda: torch.tensor(0.5, requires_grad=True),
        lambda: torch.tensor([]),
        lambda: torch.zeros(2, 4),
        lambda: torch.nn.Parameter(torch.tensor(four)),
        lambda: torch.nn.Linear(4, 3),
        lambda: torch.nn.Linear(5, 3),
        lambda: torch.nn.Linear(4, 3).to(torch.bfloat16),
        lambda: torch.nn.Linear(4, 3, device="meta"),
        lambda: torch.float32,
        lambda: torch.Size([4]),
    ]


# --- objects whose special methods raise or lie ----------------------------------------------------------------------

RAISED = (
    RuntimeError,
    ValueError,
    TypeError,
    KeyError,
    AttributeError,
    ZeroDivisionError,
    OverflowError,
    StopIteration,
)
LIES: dict[str, list[Any]] = {
    "__len__": [0, 3, 10**12, -1, "many"],
    "__array__": [None, "text", 3, np.zeros(3), np.array([None]), np.ma.masked],
    "__bool__": [True, False, 3, None],
    "__eq__": [True, False, None, np.array([True, False])],
    "__ne__": [True, False, np.array([True, False])],
    "__lt__": [True, False, None],
    "__repr__": ["", "x" * 10**6, 3, "\ud800"],
    "__str__": ["", "x" * 10**6, 3, "\ud800"],
    "__index__": [0, 1, 10**12, -5, 1.5, None],
    "__float__": [0.5, float("nan"), 1, None],
    "__int__": [1, -1, 0.5],
    "__hash__": [1, "hash"],
    "__fspath__": ["", 3, b"\xff", "/nowhere"],
    "__getattr__": [None, 3, len],
    "__array_interface__": [{}, {"shape": (10**9,), "typestr": "<f8", "version": 3}, 3],
    "__format__": [3, ""],
}
BASES: tuple[type, ...] = (object, int, float, str, list, tuple, dict)


def liar(base: type, name: str, answer: Any, *, raises: bool) -> Any:
    """An object of a subclass of `base` whose method `name` gives or raises `answer`."""

    def method(*_: Any, **__: Any) -> Any:
        if raises:
            raise answer("a special method failed")
        return answer

    members: dict[str, Any] = {name: answer if name == "__array_interface__" and not raises else method}
    if name == "__eq__":
        members["__hash__"] = object.__hash__
    made = type("Liar", (base,), members)
    given: dict[type, Any] = {int: 3, float: 0.5, str: "PN", list: [0.25] * 4, tuple: (0, 1), dict: {"a": 1}}
    return made() if base is object else made(given[base])


def iterating(kind: str) -> Any:
    class Iterating:
        def __len__(self) -> int:
            return 2

        def __iter__(self) -> Iterator[Any]:
            if kind == "raises":
                raise RuntimeError("no iteration")
            if kind == "none":
                return None  # type: ignore[return-value]
            if kind == "breaks":
                return (1 / (1 - i) for i in range(3))
            if kind == "endless":
                return itertools.repeat(0.5)
            return iter([0.0, 1.0, 2.0])

    return Iterating()


def hostile_things(chance: random.Random) -> Thing:
    if chance.random() < 0.15:
        kind = chance.choice(["raises", "none", "breaks", "endless", "longer"])
        return lambda: iterating(kind)
    base, name = chance.choice((object, object, *BASES)), chance.choice([*LIES])
    raises = chance.random() < 0.5
    answer = chance.choice(RAISED) if raises else chance.choice(LIES[name])
    return lambda: liar(base, name, answer, raises=raises)


FAMILIES: list[list[Thing]] = [numpy_things(), python_things(), frame_things(), tensor_things()]


def thing(chance: random.Random) -> Any:
    """Any of the objects above."""
    family = chance.choice([*FAMILIES, None])
    return hostile_things(chance)() if family is None else chance.choice(family)()


# --- functions that change their mind --------------------------------------------------------------------------------


def fickle(chance: random.Random, good: Callable[[Any], Any]) -> Callable[..., Any]:
    """A function that answers well for some calls, and then as it likes."""
    patience, moods = chance.choice([0, 0, 1, 3, 10]), chance.choice([1, 2])
    doing = [chance.choice(MOODS) for _ in range(moods)]
    other = thing(chance)
    calls = itertools.count()

    def fun(batch: Any, *_: Any) -> Any:
        turn = next(calls)
        values = good(np.asarray(batch))
        return values if turn < patience else doing[turn % moods](values, other)

    return fun


def _raise(values: Any, other: Any) -> Any:
    raise RuntimeError(other)


MOODS: list[Callable[[Any, Any], Any]] = [
    lambda values, other: values,
    lambda values, other: other,
    lambda values, other: values.tolist(),
    lambda values, other: tuple(values),
    lambda values, other: values.astype(np.float16),
    lambda values, other: values.astype(np.longdouble),
    lambda values, other: (values * 100).astype(np.int8),
    lambda values, other: values > values.mean(),
    lambda values, other: values.astype(object),
    lambda values, other: values.astype(str),
    lambda values, other: values + 0j,
    lambda values, other: values[:-1],
    lambda values, other: values[..., None],
    lambda values, other: values.T,
    lambda values, other: np.concatenate([values, values], axis=-1),
    lambda values, other: np.ma.masked_array(values, values > values.mean()),
    lambda values, other: np.ma.masked_array(values),
    lambda values, other: values * np.nan,
    lambda values, other: values * 1e308,
    lambda values, other: values + np.random.default_rng().normal(size=values.shape),
    lambda values, other: torch.tensor(values),
    lambda values, other: torch.tensor(values, requires_grad=True),
    lambda values, other: torch.tensor(values).to(torch.bfloat16),
    lambda values, other: iter(values),
    lambda values, other: (value for value in values),
    lambda values, other: dict(enumerate(values)),
    lambda values, other: values.astype(">f4"),
    lambda values, other: [other] * len(values),
    lambda values, other: Frame(),
    _raise,
]


def bowl(points: Any) -> Any:
    return np.square(np.asarray(points, np.float64) - 0.5).sum(axis=-1)


def scores(batch: Any) -> Any:
    flat = np.asarray(batch, np.float64).reshape(len(batch), -1)
    return np.stack([flat.sum(axis=1), flat[:, 0] * 3 - 0.2, 1 - flat.mean(axis=1)], axis=1)


# --- the calls -------------------------------------------------------------------------------------------------------

MINIMIZE: dict[str, Any] = {
    "l1": 0.1,
    "l2": 0.1,
    "bounds": (0, 1),
    "budget": 80,
    "method": None,
    "rng": 0,
    "vectorized": True,
    "stochastic": False,
    "callback": None,
    "returns": "last",
    "maxiter": 5,
    "max_time": 5.0,
    "target": -1.0,
    "max_sent": 90,
    "on_error": "raise",
    "nonfinite": "stop",
    "noise": 0.0,
    "run_dir": None,
    "workers": None,
    "block_rows": None,
}
OPTIMIZER = {name: MINIMIZE[name] for name in ("l1", "l2", "bounds", "method", "rng", "stochastic", "returns", "noise")}
VECTOR: dict[str, Any] = {
    "bounds": (0, 1),
    "baseline": 0.0,
    "fixed": None,
    "signed": True,
    "scale": None,
    "mean": None,
    "std": None,
}
ATTACK: dict[str, Any] = {
    "features": None,
    "l1": 0.1,
    "l2": 0.1,
    "kappa": 0.0,
    "budget": 100,
    "rng": 0,
    "method": None,
    "label": None,
    "target": None,
    "class_names": None,
    "feature_names": None,
    "callback": None,
    "max_sent": 120,
    "on_error": "raise",
    "run_dir": None,
    "bounds": (0, 1),
    "fixed": None,
    "scale": None,
}
EXPLAIN = ATTACK | VECTOR | {"kind": "PN", "loss": "hinge", "search": 0}
MANY = {name: value for name, value in EXPLAIN.items() if name != "callback"} | {
    "lockstep": 2,
    "progress": False,
    "names": None,
    "workers": None,
}
HTTP: dict[str, Any] = {
    "model": None,
    "version": None,
    "input": "x",
    "output": None,
    "datatype": None,
    "encoding": "auto",
    "rows": "instances",
    "scores": "predictions",
    "batch_rows": None,
    "concurrency": 1,
    "token_env": None,
    "header_env": None,
    "timeout": 0.2,
    "retries": 0,
    "max_bytes": 1000,
    "ca_file": None,
    "proxy": None,
    "rng": 0,
    "on_send": None,
}
COMMAND: dict[str, Any] = {
    "framing": "lines",
    "persistent": True,
    "timeout": 1.0,
    "environment": (),
    "cwd": None,
    "max_bytes": 1000,
}
X0 = np.full(4, 0.25)


def spoilt(chance: random.Random, usual: dict[str, Any], *, how_many: int | None = None) -> dict[str, Any]:
    """Some of the usual options, one or two of them replaced."""
    given = {name: usual[name] for name in usual if chance.random() < 0.3 or name in ("budget", "timeout", "bounds")}
    for name in chance.sample([*usual], chance.choice([1, 1, 2]) if how_many is None else how_many):
        given[name] = thing(chance)
    if callable(given.get("callback")):
        given["callback"] = None  # what a callback raises is its own affair
    return given


def start(chance: random.Random) -> Any:
    return thing(chance) if chance.random() < 0.25 else X0.copy()


def function(chance: random.Random, good: Callable[[Any], Any]) -> Any:
    return thing(chance) if chance.random() < 0.2 else fickle(chance, good)


def called(
    chance: random.Random, good: Callable[[Any], Any], usual: dict[str, Any]
) -> tuple[Callable[..., Any], Any, dict[str, Any]]:
    """A function, a point and options, of which mostly one is odd, so that calls get far."""
    odd = chance.choice(["function", "function", "point", "options", "options", "all"])
    fun = function(chance, good) if odd in ("function", "all") else good
    point = thing(chance) if odd == "point" else start(chance) if odd == "all" else X0.copy()
    return fun, point, spoilt(chance, usual, how_many=None if odd in ("options", "all") else 0)


def call_minimize(chance: random.Random) -> Thing:
    fun, x0, options = called(chance, bowl, MINIMIZE)
    return lambda: zm.minimize(fun, x0, **options)


def call_optimizer(chance: random.Random) -> Thing:
    fun, x0, options = called(chance, bowl, OPTIMIZER)

    def run() -> Any:
        opt = zm.Optimizer(x0, **options)
        for _ in range(2):
            asked = opt.ask()
            try:
                values = fun(asked)
            except Exception:  # noqa: BLE001 - the caller's own function, called by the caller
                values = fun
            opt.tell(values)
        return opt.result

    return run


def call_explain(chance: random.Random) -> Thing:
    model, x0, options = called(chance, scores, EXPLAIN)
    return lambda: zm.explain(model, x0, **options)


def call_attack(chance: random.Random) -> Thing:
    model, x0, options = called(chance, scores, ATTACK)
    return lambda: zm.attack(model, x0, **options)


def call_explain_many(chance: random.Random) -> Thing:
    model, x0, options = called(chance, scores, MANY)
    inputs = x0 if x0 is not X0 and chance.random() < 0.2 else [X0, x0]
    if isinstance(inputs, itertools.count | itertools.repeat) or type(inputs).__name__ == "Iterating":
        inputs = [X0]  # endless inputs are endless work
    many: Callable[..., Any] = zm.attack_many if chance.random() < 0.2 else zm.explain_many
    return lambda: many(model, inputs, **options)


def call_vector(chance: random.Random) -> Thing:
    options, x0, kind = spoilt(chance, VECTOR | {"names": None}), start(chance), chance.choice(["PN", "PP"])
    return lambda: zm.Vector(**options).place(x0, kind if chance.random() < 0.9 else thing(chance))


def answering(model: Any) -> Any:
    """A function whose own exceptions, which a classifier passes on to who calls it, are an answer."""

    def ask(batch: Any) -> Any:
        try:
            return model(batch)
        except Exception as error:  # noqa: BLE001
            return error

    return ask


def call_classifier(chance: random.Random) -> Thing:
    batch = thing(chance) if chance.random() < 0.3 else np.full((2, 4), 0.25)
    rows = thing(chance) if chance.random() < 0.3 else chance.choice([None, 1, 2])
    kind = chance.choice(["function", "any", "onnx", "http", "command"])
    if kind == "function":
        model = answering(function(chance, scores))
        return lambda: zm.as_classifier(model, batch_rows=rows)(batch)
    if kind == "any":
        model = thing(chance)
        return lambda: zm.as_classifier(model, batch_rows=rows)(batch)
    if kind == "onnx":
        path = thing(chance)
        return lambda: zm.onnx_classifier(path, batch_rows=rows)(batch)
    if kind == "http":
        url = "http://127.0.0.1:9" if chance.random() < 0.8 else thing(chance)
        options = spoilt(chance, HTTP)
        return lambda: zm.http_classifier(url, **options)(batch)
    args = [sys.executable, "-c", "pass"] if chance.random() < 0.8 else thing(chance)
    options = spoilt(chance, COMMAND)
    make: Callable[..., Any] = zm.command_classifier if chance.random() < 0.5 else zm.command_function
    return lambda: make(args, **options)


def call_readers(chance: random.Random) -> Thing:
    value, other = thing(chance), thing(chance)
    return chance.choice(
        [
            lambda: zm.Explanation.from_json(value),
            lambda: zm.runs.inspect(value),
            lambda: zm.runs.list_runs(value),
            lambda: zm.Optimizer.open(value, X0),
            lambda: classifiers.Function(value),
            lambda: zm.Retry(value),
            lambda: zm.Workers(value, other),
            lambda: zm.methods.Box(value, other),
            lambda: zm.methods.Box.of(value, 4),
            lambda: zm.methods.ElasticNet(value, other),
            lambda: zm.methods.zo_ada_expmd(value),
            lambda: zm.methods.zo_expmd(value, other),
            lambda: zm.methods.TwoPoint(value, radius=other),
        ]
    )


TASKS: dict[str, tuple[Callable[[random.Random], Thing], float]] = {
    "minimize": (call_minimize, 0.2),
    "optimizer": (call_optimizer, 0.1),
    "explain": (call_explain, 0.2),
    "attack": (call_attack, 0.1),
    "explain_many": (call_explain_many, 0.1),
    "vector": (call_vector, 0.1),
    "classifier": (call_classifier, 0.1),
    "readers": (call_readers, 0.1),
}


@pytest.mark.parametrize("task", TASKS)
def test_a_call_gives_a_result_or_an_error_of_ours(task: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    make, share = TASKS[task]
    found: dict[str, str] = {}
    results = 0
    for i in range(int(share * CALLS)):
        if ONLY not in ("", f"{task}:{i}"):
            continue
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            call = make(random.Random(f"{SEED}:{task}:{i}"))  # noqa: S311 - not for secrets
        started = time.process_time()
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                call()
            results += 1
        except zm.errors.ZomirrorError as error:
            text = str(error)
            if len(text) < 15 or " " not in text:
                found[f"{task}:{i}"] = f"no sentence: {text!r}"
        except Exception as error:
            if ONLY:
                raise
            where = error.__traceback__
            frames = []
            while where is not None:
                frames.append(f"{Path(where.tb_frame.f_code.co_filename).name}:{where.tb_lineno}")
                where = where.tb_next
            found[f"{task}:{i}"] = f"{type(error).__name__} at {' > '.join(frames[-4:])}"
        if (seconds := time.process_time() - started) > LONGEST:
            found[f"{task}:{i}"] = f"{seconds:.1f} s"
    print(f"{task}: {results} results of {int(share * CALLS)} calls")  # noqa: T201 - what make fuzz reports
    assert not found, f"{len(found)} calls: " + "\n".join(f"{name}: {what}" for name, what in found.items())
    few = int(share * CALLS) < 100
    assert ONLY or results or few, "no call gave a result: only the checks were tested"
