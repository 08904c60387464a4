"""The contract checks hold for every piece of the library, and find a piece that breaks its contract."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest

import zomirror as zm
from tests.conftest import DIRECTIONS, ESTIMATORS, MIRRORS, STEP_RULES, phi_entropy, phi_euclidean
from zomirror.methods.directions import Directions, Key, Rademacher
from zomirror.methods.estimator import Estimator
from zomirror.methods.mirror import MirrorMap
from zomirror.methods.query import Query
from zomirror.methods.step import StepRule
from zomirror.numerics.arrays import Array, Values
from zomirror.testing import check_directions, check_estimator, check_mirror_map, check_step_rule


@pytest.mark.parametrize(("mirror", "phi"), [pytest.param(*both, id=str(both[0])) for both in MIRRORS])
def test_mirror_maps_keep_their_contract(mirror: MirrorMap, phi: Callable[[Array], float]) -> None:
    check_mirror_map(mirror, phi)


@pytest.mark.parametrize("directions", DIRECTIONS, ids=str)
def test_directions_keep_their_contract(directions: Directions) -> None:
    check_directions(directions)


@pytest.mark.parametrize("estimator", ESTIMATORS, ids=str)
def test_estimators_keep_their_contract(estimator: Estimator) -> None:
    check_estimator(estimator)


@pytest.mark.parametrize("rule", STEP_RULES, ids=str)
@pytest.mark.parametrize("mirror", [mirror for mirror, _ in MIRRORS], ids=str)
def test_step_rules_keep_their_contract(rule: StepRule, mirror: MirrorMap) -> None:
    check_step_rule(rule, mirror=mirror)


# --- pieces with one fault each: the check must say which promise is broken ---------------------------------------


class Euclid:
    """A correct map to be broken one method at a time."""

    def step(self, x: Array, g: Array, eta: float, h: zm.methods.ElasticNet, box: zm.methods.Box) -> Array:
        return zm.methods.Euclidean().step(x, g, eta, h, box)

    def movement(self, x: Array, y: Array) -> float:
        return zm.methods.Euclidean().movement(x, y)

    def check(self, h: zm.methods.ElasticNet, box: zm.methods.Box) -> None:
        pass


def broken_map(**methods: Callable[..., Any]) -> Any:
    return type("Broken", (Euclid,), {name: staticmethod(method) for name, method in methods.items()})()


def refuse_all(h: zm.methods.ElasticNet, box: zm.methods.Box) -> None:
    raise zm.errors.ArgumentError("nothing will do")


EUCLID = zm.methods.Euclidean().step
BROKEN_MAPS: dict[str, tuple[Any, str]] = {
    "wrong dtype": (broken_map(step=lambda x, *rest: EUCLID(x, *rest).astype(np.float64)), "an array like x"),
    "gives x back": (broken_map(step=lambda x, *rest: x), "new array"),
    "random": (broken_map(step=lambda x, *rest: EUCLID(x, *rest) + np.random.default_rng().random()), "same bits"),
    "leaves the box": (
        broken_map(step=lambda x, g, eta, h, box: EUCLID(x, g, eta, h, zm.methods.Box())),
        "stay in the box",
    ),
    "forgets l1": (
        broken_map(step=lambda x, g, eta, h, box: EUCLID(x, g, eta, replace(h, l1=0.0), box)),
        "must minimise",
    ),
    "forgets eta": (broken_map(step=lambda x, g, eta, h, box: EUCLID(x, g, 1.0, h, box)), "must minimise"),
    "1% off": (broken_map(step=lambda x, g, eta, h, box: EUCLID(x, 1.01 * g, eta, h, box)), "must minimise"),
    "refuses all": (broken_map(check=refuse_all), "at least one"),
    "writes into x": (broken_map(step=lambda x, *rest: np.multiply(x, 0.5, out=x)), "read-only"),
    "moves from x to x": (broken_map(movement=lambda x, y: 1.0), "0 from x to x"),
    "numpy movement": (broken_map(movement=lambda x, y: np.linalg.norm(x - y)), "plain float"),
    "one-sided movement": (
        broken_map(movement=lambda x, y: float(np.linalg.norm(x - y)) * float(1 + abs(x[0]))),
        "there and back",
    ),
}


@pytest.mark.parametrize("fault", BROKEN_MAPS)
def test_broken_mirror_map_is_found(fault: str) -> None:
    mirror, sentence = BROKEN_MAPS[fault]
    with pytest.raises((AssertionError, ValueError), match=sentence):
        check_mirror_map(mirror, phi_euclidean)


def test_wrong_phi_is_found() -> None:
    with pytest.raises(AssertionError, match="must minimise"):
        check_mirror_map(zm.methods.Euclidean(), phi_entropy)


def test_inexact_zeros_are_found() -> None:
    def step(x: Array, g: Array, eta: float, h: zm.methods.ElasticNet, box: zm.methods.Box) -> Array:
        y = EUCLID(x, g, eta, h, box)
        return y + np.asarray(1e-12, y.dtype) if h.l1 > 100 else y

    with pytest.raises(AssertionError, match="exact zeros"):
        check_mirror_map(broken_map(step=step), phi_euclidean)


@dataclass(frozen=True)
class Faulty:
    """Rademacher directions with one fault."""

    fault: str

    def delta(self, d: int) -> float:
        return 2.0 if self.fault == "delta" else 1.0

    def fill(self, out: Array, key: Key, t: int, start: int, scale: float) -> None:
        used = {
            "blocks": (key, t, 0),
            "iteration": (key, 0, start),
            "key": ((key[0], 0), t, start),
        }.get(self.fault, (key, t, start))
        Rademacher().fill(out, *used, 1.0 if self.fault == "scale" else scale)
        if self.fault == "correlated":
            out[:, -1] = out[:, 0]
        if self.fault == "partial":
            out[-1:, -1] = np.nan


@pytest.mark.parametrize(
    ("fault", "sentence"),
    [
        ("delta", "E.u u.T. must be I / delta"),
        ("blocks", "depend on their blocks"),
        ("iteration", "other t must give"),
        ("key", "second word of the key"),
        ("scale", "multiply by scale"),
        ("correlated", "E.u u.T. must be I / delta"),
        ("partial", "write every entry"),
    ],
)
def test_broken_directions_are_found(fault: str, sentence: str) -> None:
    with pytest.raises(AssertionError, match=sentence):
        check_directions(Faulty(fault))


class TwoPointWith:
    """A two-point estimator with one fault."""

    def __init__(self, fault: str) -> None:
        self.fault = fault
        self.asked = 0
        self.base = zm.methods.TwoPoint(5, radius=1e-3)

    def init(self, problem: zm.methods.Problem) -> Any:
        return {"dict": 1} if self.fault == "memory" else np.zeros(1)

    def ask(self, memory: Any, problem: zm.methods.Problem, x: Array, t: int, key: Key) -> Query:
        self.asked += 1
        query = self.base.ask(None, problem, x, t + self.asked if self.fault == "ask" else t, key)
        if self.fault == "draws" and problem.stochastic:
            first, second = query.segments
            return replace(query, segments=(first, replace(second, first_sample=10_000 + t)))
        if self.fault == "one draw" and problem.stochastic:
            first, second = query.segments
            return replace(query, segments=(replace(first, first_sample=0), replace(second, first_sample=0)))
        return query

    def tell(self, memory: Any, query: Query, values: Values) -> tuple[zm.methods.Estimate, Any]:
        (f, g), _ = self.base.tell(None, query, values)
        assert g is not None
        if self.fault == "impure":
            memory += 1
        if self.fault == "factor":
            g = g * g.dtype.type(1.3)
        if self.fault == "dtype":
            g = g.astype(np.float16)
        return zm.methods.Estimate(f + 1 if self.fault == "f" else f, g), memory


@pytest.mark.parametrize(
    ("fault", "sentence"),
    [
        ("memory", "memory must be numbers"),
        ("ask", "same points when asked again"),
        ("impure", "leave its memory alone"),
        ("factor", "must be unbiased"),
        ("dtype", "array like x"),
        ("f", "must be f.x."),
        ("draws", "noise must cancel"),
        ("one draw", "iterations must not share"),
    ],
)
def test_broken_estimator_is_found(fault: str, sentence: str) -> None:
    with pytest.raises(AssertionError, match=sentence):
        check_estimator(TwoPointWith(fault))


def test_the_faultless_form_of_the_broken_estimator_passes() -> None:
    check_estimator(TwoPointWith("none"))
    check_directions(Faulty("none"))
    check_mirror_map(broken_map(), phi_euclidean)


@dataclass(frozen=True)
class Rule:
    """A step rule with one fault."""

    fault: str

    def init(self) -> Any:
        return {1} if self.fault == "memory" else np.ones(1)

    def eta(self, memory: Any, gradient: Array) -> Any:
        values = {"negative": -1.0, "infinite": np.inf, "numpy": np.float64(1.0)}
        if self.fault == "random":
            return float(np.random.default_rng().random()) + 1
        return values.get(self.fault, float(memory[0]))

    def advance(self, memory: Any, mirror: MirrorMap, x: Array, x_next: Array, eta: float) -> Any:
        if self.fault == "impure":
            memory += 1
        if self.fault == "unrepeatable":
            return memory + np.random.default_rng().random()
        return memory + 0


@pytest.mark.parametrize(
    ("fault", "sentence"),
    [
        ("memory", "memory must be numbers"),
        ("negative", "positive and finite"),
        ("infinite", "positive and finite"),
        ("numpy", "plain float"),
        ("random", "same when asked again"),
        ("impure", "leave its memory alone"),
        ("unrepeatable", "same when called again"),
    ],
)
def test_broken_step_rule_is_found(fault: str, sentence: str) -> None:
    check_step_rule(Rule("none"))
    with pytest.raises(AssertionError, match=sentence):
        check_step_rule(Rule(fault))
