"""The public functions, called with anything: a result, or an error of ours with a sentence; never a non-finite x.

ZOMIRROR_FUZZ=10000 pytest tests/project/test_fuzz.py makes 10,000 calls in all (make fuzz); by default there are fewer.
"""

from __future__ import annotations

import os
import time
from typing import Any

import hypothesis
import numpy as np
from hypothesis import HealthCheck, given
from hypothesis import strategies as st

import zomirror as zm

CALLS = int(os.environ.get("ZOMIRROR_FUZZ", "300"))
HEALTHY = (HealthCheck.too_slow, HealthCheck.large_base_example, HealthCheck.data_too_large)
LONGEST = 30.0  # seconds of one call on a busy machine: a hang takes longer


def calls(share: float) -> hypothesis.settings:
    return hypothesis.settings(max_examples=max(20, int(share * CALLS)), deadline=None, suppress_health_check=HEALTHY)


# --- anything ------------------------------------------------------------------------------------------------------

numbers = st.one_of(
    st.floats(),
    st.integers(-(2**70), 2**70),
    st.sampled_from([0, 1, -1, 0.0, 0.1, 1.0, 1e308, -1e308, 5e-324, np.nan, np.inf, -np.inf, True, False]),
)
odd: st.SearchStrategy[Any] = st.one_of(
    st.none(),
    st.booleans(),
    numbers,
    st.text(max_size=5),
    st.binary(max_size=5),
    st.complex_numbers(),
    st.lists(numbers, max_size=3),
    st.dictionaries(st.text(max_size=2), numbers, max_size=2),
    st.builds(object),
    st.just(np.array(["a"])),
    st.just(np.array([None])),
    st.just(lambda *_: None),
    st.just(int),
)
dtypes = st.sampled_from([np.float64, np.float32, np.float16, np.int64, np.int8, np.uint8, np.bool_, np.complex128])
shapes = st.one_of(st.integers(0, 6).map(lambda d: (d,)), st.tuples(st.integers(0, 3), st.integers(0, 3)), st.just(()))


@st.composite
def arrays(draw: Any) -> Any:
    shape, dtype = draw(shapes), draw(dtypes)
    size = int(np.prod(shape))
    values = draw(
        st.lists(st.sampled_from([0.0, 0.25, 0.5, 1.0, -2.0, 1e30, np.nan, np.inf]), min_size=size, max_size=size)
    )
    with np.errstate(all="ignore"):
        return np.array(values, np.float64).astype(dtype).reshape(shape)


points: st.SearchStrategy[Any] = st.one_of(st.integers(1, 6).map(lambda d: np.full(d, 0.25)), arrays(), odd)
bounds: st.SearchStrategy[Any] = st.one_of(
    st.sampled_from([(0, 1), None, (-1, 1), (0, np.inf), (-np.inf, np.inf), [(0, 1)] * 3]),
    st.tuples(numbers, numbers),
    st.tuples(arrays(), arrays()),
    odd,
)


def answers(draw: Any) -> Any:
    """A function of points: well behaved or not."""
    kind = draw(
        st.sampled_from(["good", "good", "good", "nan", "inf", "huge", "shape", "raise", "odd", "flat", "kept"])
    )
    thing = draw(odd) if kind == "odd" else None
    kept: list[Any] = []

    def fun(x: Any, *_: Any) -> Any:
        values = np.square(np.asarray(x, np.float64) - 0.5).sum(axis=-1)
        if kind == "nan":
            return np.where(np.arange(values.size).reshape(values.shape) % 3 == 1, np.nan, values)
        if kind == "inf":
            return values * -np.inf
        if kind == "huge":
            return np.sign(values - values.mean()) * 1e308
        if kind == "shape":
            return np.stack([values, values])
        if kind == "raise":
            raise RuntimeError("out of order")
        if kind == "odd":
            return thing
        if kind == "kept":
            kept.append(x)
        return np.zeros_like(values) if kind == "flat" else values

    return fun


@st.composite
def functions(draw: Any) -> Any:
    return draw(odd) if draw(st.integers(0, 9)) == 0 else answers(draw)


methods = st.one_of(
    st.none(),
    st.integers(1, 9).map(zm.methods.zo_ada_expmd),
    st.tuples(st.floats(1e-3, 1e6), st.integers(1, 9)).map(lambda pair: zm.methods.zo_expmd(*pair)),
    st.tuples(st.floats(1e-3, 1e6), st.integers(1, 9)).map(lambda pair: zm.methods.zo_psgd(*pair)),
    odd,
)


callbacks = odd.filter(lambda value: value is not int)  # what a callback raises is its own affair


def mostly(usual: Any, strange: st.SearchStrategy[Any] = odd) -> st.SearchStrategy[Any]:
    """The usual value most of the time, so that calls get far."""
    good = usual if isinstance(usual, st.SearchStrategy) else st.just(usual)
    return st.integers(0, 14).flatmap(lambda n: strange if n == 0 else good)


minimize_options = st.fixed_dictionaries(
    {},
    optional={
        "l1": mostly(st.floats(0, 10), numbers),
        "l2": mostly(st.floats(0, 10), numbers),
        "bounds": mostly((0, 1), bounds),
        "budget": mostly(st.integers(1, 120), st.one_of(st.integers(-5, 200), odd)),
        "method": methods,
        "rng": mostly(st.integers(0, 2**70)),
        "vectorized": st.booleans(),
        "stochastic": mostly(False, st.booleans()),
        "callback": mostly(None, callbacks),
        "returns": mostly(st.sampled_from(["last", "best", "random"])),
        "maxiter": mostly(st.integers(1, 20)),
        "max_time": mostly(st.floats(0.001, 10), numbers),
        "target": mostly(st.floats(allow_nan=False), numbers),
        "max_sent": mostly(st.integers(1, 300)),
        "on_error": mostly(st.sampled_from(["raise", zm.Retry(1)])),
        "nonfinite": mostly(st.sampled_from(["stop", "refuse"])),
        "noise": mostly(st.floats(0, 1), numbers),
        "run_dir": mostly(None, st.one_of(st.just(""), st.just("\0"), st.integers(), st.binary(max_size=3))),
    },
)


def outcome(call: Any, *given: Any, **options: Any) -> Any:
    """What the call gives; an error must be ours, with a sentence, and the partial result of it is looked at too."""
    started = time.monotonic()
    try:
        options.setdefault("budget", 120)
        found = call(*given, **options)
    except zm.errors.ZomirrorError as error:
        text = str(error)
        assert len(text) > 15, text
        assert " " in text, text
        found = getattr(error, "result", None)
    assert time.monotonic() - started < LONGEST
    return found


@calls(0.4)
@given(functions(), points, minimize_options)
def test_minimize(fun: Any, x0: Any, options: dict[str, Any]) -> None:
    result = outcome(zm.minimize, fun, x0, **options)
    if result is not None:
        assert np.isfinite(result.x).all()
        assert isinstance(result.status, zm.Status)
        assert result.used <= result.sent <= (options.get("max_sent") or options.get("budget", 120))


@calls(0.2)
@given(functions(), points, minimize_options, st.integers(0, 3))
def test_ask_and_tell(fun: Any, x0: Any, options: dict[str, Any], batches: int) -> None:
    names = ("l1", "l2", "bounds", "method", "rng", "stochastic", "returns", "noise")
    opt = outcome(lambda *a, **k: zm.Optimizer(*a, **{n: k[n] for n in k if n in names}), x0, **options)
    if opt is None:
        return
    for _ in range(batches):
        asked = opt.ask()
        assert np.isfinite(asked).all()
        try:
            values = fun(asked) if callable(fun) else fun
        except Exception:  # noqa: BLE001 - it is the caller's own
            return
        try:
            opt.tell(values)
        except zm.errors.ZomirrorError:
            return
        assert np.isfinite(opt.x).all()
    assert np.isfinite(opt.result.x).all()


def scoring(draw: Any) -> Any:
    """A model: well behaved or not."""
    kind = draw(
        st.sampled_from(["good", "good", "good", "nan", "one class", "constant", "shape", "raise", "odd", "huge"])
    )
    thing = draw(odd) if kind == "odd" else None

    def model(batch: Any) -> Any:
        flat = batch.reshape(len(batch), -1).astype(np.float64)
        scores = np.stack([flat.sum(axis=1), flat[:, 0] * 3 - 0.2, 1 - flat.mean(axis=1)], axis=1)
        if kind == "nan":
            return np.where(scores > 0.7, np.nan, scores)
        if kind == "one class":
            return scores[:, :1]
        if kind == "constant":
            return np.zeros_like(scores)
        if kind == "shape":
            return scores[0]
        if kind == "raise":
            raise RuntimeError("out of order")
        if kind == "huge":
            return scores * 1e308
        return thing if kind == "odd" else scores

    return model


@st.composite
def models(draw: Any) -> Any:
    return draw(odd) if draw(st.integers(0, 9)) == 0 else scoring(draw)


explain_options = st.fixed_dictionaries(
    {},
    optional={
        "kind": mostly(st.sampled_from(["PP", "PN"])),
        "l1": mostly(st.floats(0, 10), numbers),
        "l2": mostly(st.floats(0, 10), numbers),
        "kappa": mostly(st.floats(0, 2), numbers),
        "bounds": mostly((0, 1), bounds),
        "budget": mostly(st.integers(100, 160), st.one_of(st.integers(-5, 200), odd)),
        "rng": mostly(st.integers(0, 2**70)),
        "loss": mostly(st.sampled_from(["hinge", "softplus"])),
        "method": mostly(None, methods),
        "label": mostly(None, st.one_of(st.integers(-2, 4), odd)),
        "target": mostly(None, st.one_of(st.integers(-2, 4), odd)),
        "baseline": mostly(0.0, st.one_of(numbers, arrays(), odd)),
        "fixed": mostly(None, st.one_of(st.lists(st.integers(-2, 6), max_size=4), arrays(), odd)),
        "signed": st.booleans(),
        "scale": mostly(None, st.one_of(numbers, arrays(), odd)),
        "mean": mostly(None, st.one_of(numbers, arrays(), odd)),
        "std": mostly(None, st.one_of(numbers, arrays(), odd)),
        "search": mostly(st.integers(0, 3)),
        "feature_names": mostly(None),
        "class_names": mostly(None),
        "callback": mostly(None, callbacks),
        "max_sent": mostly(st.integers(1, 300)),
    },
)


@calls(0.2)
@given(models(), points, explain_options)
def test_explain(model: Any, x0: Any, options: dict[str, Any]) -> None:
    one = outcome(zm.explain, model, x0, **options)
    if one is not None:
        assert np.isfinite(one.x).all()
        assert zm.Explanation.from_json(one.to_json()).to_json() == one.to_json()
        assert one.nfev <= one.sent


@calls(0.1)
@given(
    models(),
    st.one_of(arrays(), st.lists(points, max_size=3), odd),
    explain_options,
    mostly(st.integers(1, 4)),
    mostly(None),
)
def test_explain_many(model: Any, x: Any, options: dict[str, Any], lockstep: Any, progress: Any) -> None:
    options = {name: value for name, value in options.items() if name != "callback"}
    found = outcome(zm.explain_many, model, x, lockstep=lockstep, progress=bool(progress), **options)
    for one in found or []:
        assert np.isfinite(one.x).all()


@calls(0.1)
@given(odd, odd, numbers, numbers, bounds)
def test_the_pieces(anything: Any, other: Any, a: Any, b: Any, box: Any) -> None:
    for make in (
        lambda: zm.methods.zo_ada_expmd(anything),
        lambda: zm.methods.zo_expmd(a, anything),
        lambda: zm.methods.zo_psgd(a, other),
        lambda: zm.methods.ElasticNet(a, b),
        lambda: zm.methods.Box(anything, other),
        lambda: zm.methods.Box.of(box, 3),
        lambda: zm.Retry(anything),
        lambda: zm.methods.Constant(a),
        lambda: zm.methods.Adaptive(a, b),
        lambda: zm.methods.TwoPoint(anything, radius=other),
        lambda: zm.Explanation.from_json(anything),
        lambda: zm.runs.inspect(anything),
    ):
        outcome(lambda make=make, **_: make())
