"""The options of explain() and attack(): one frozen object, checked before the first query.

The public functions build it, the search reads it, run directories and explanations store its `record()`. To add an
option, add a field here and a line to the docstring of explain().
"""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import Any

import numpy as np

from zomirror.checks import choice, nonnegative, positive_integer
from zomirror.contrast.loss import LOSSES
from zomirror.engine.durable import stable_repr
from zomirror.errors import ArgumentError, ArgumentTypeError
from zomirror.features.vector import KINDS, Vector, as_names
from zomirror.methods.descent import Method
from zomirror.problem import ElasticNet

SMALLEST_BUDGET = 100
"""A smaller budget is refused: too few queries for any stage of the search."""
ATTACK_FIXES = {"kind": "PN", "signed": True, "loss": "hinge", "baseline": 0.0, "search": 0}
"""Options that attack() sets and does not take."""


@dataclass(frozen=True, slots=True, eq=False)
class Options:
    """The options that explain() documents, which do not depend on the input."""

    task: str = "explain"
    kind: str = "PN"
    l1: float = 0.1
    l2: float = 0.15
    kappa: float = 0.0
    budget: int = 10_000
    loss: str = "hinge"
    method: Method | None = None
    """None: the recommended method, which is told the margins and applies the loss itself."""
    label: int | None = None
    target: int | None = None
    search: int = 0
    features: Vector = field(default_factory=Vector)
    class_names: Any = None

    def __post_init__(self) -> None:
        put = object.__setattr__
        put(self, "class_names", as_names("class_names", self.class_names))
        choice("kind", self.kind, KINDS)
        choice("loss", self.loss, tuple(LOSSES))
        for name in ("l1", "l2", "kappa"):
            put(self, name, nonnegative(name, getattr(self, name)))
        put(self, "budget", positive_integer("budget", self.budget))
        if self.budget < SMALLEST_BUDGET:
            raise ArgumentError(
                f"expected budget >= {SMALLEST_BUDGET}, got {self.budget}: fewer queries explain nothing"
            )
        for name in ("label", "target"):
            put(self, name, None if getattr(self, name) is None else _natural(name, getattr(self, name)))
        put(self, "search", _natural("search", self.search))
        if self.target is not None and self.kind == "PP":
            raise ArgumentError("expected no target for a PP, which keeps the class: give label= to explain another")
        if not isinstance(self.features, Vector):
            raise ArgumentTypeError(f"expected features to be zm.Vector(...), got {self.features!r}")

    @classmethod
    def of(cls, task: str, given: dict[str, Any]) -> Options:
        """The options from the keywords of explain() or attack(), including the short form of Vector."""
        short = {VECTOR[name]: value for name, value in given.items() if name in VECTOR}
        if (features := given.get("features")) is None:
            features = Vector(**short)
        elif short:
            raise ArgumentError(
                f"expected features, or {', '.join(sorted(short))} as its short form, got both: give them to Vector()"
            )
        rest = {name: value for name, value in given.items() if name not in VECTOR and name != "features"}
        return cls(task=task, features=features, **rest)

    @property
    def penalty(self) -> ElasticNet:
        """h(w) = l1 |w|_1 + (l2/2) |w|_2^2."""
        return ElasticNet(self.l1, self.l2)

    def record(self) -> dict[str, Any]:
        """The options as JSON: what run directories compare and explanations carry."""
        kept = ("task", "kind", "l1", "l2", "kappa", "budget", "loss", "label", "target", "search")
        record = {name: getattr(self, name) for name in kept} | {
            "method": "recommended" if self.method is None else stable_repr("method", self.method),
            "signed": bool(self.features.signed),
        }
        normalised = {name: np.asarray(getattr(self.features, name)).tolist() for name in ("mean", "std")}
        return record | (normalised if self.features.mean is not None else {})


VECTOR = {item.name: item.name for item in fields(Vector) if item.name != "names"} | {"feature_names": "names"}
"""Keywords of explain() that are a short form of Vector, mapped to its fields."""
_NAMES = frozenset(item.name for item in fields(Options) if item.name != "task") | VECTOR.keys()
KNOWN = {
    "explain": _NAMES,
    "attack": _NAMES - ATTACK_FIXES.keys(),
}
"""The options that explain_many() and attack_many() take."""


def _natural(name: str, value: object) -> int:
    if isinstance(value, bool) or not isinstance(value, int | np.integer):
        raise ArgumentTypeError(f"expected {name} to be an integer, got {value!r}")
    if value < 0:
        raise ArgumentError(f"expected {name} >= 0, got {value}")
    return int(value)
