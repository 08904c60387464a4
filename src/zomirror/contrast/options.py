"""The options of explain() and attack(): one frozen object, checked before the first query.

The public functions build it, the search reads it, run directories and explanations store its `record()`. To add an
option, add a field here and a line to the docstring of explain().
"""

from __future__ import annotations

from dataclasses import dataclass, field, fields, replace
from typing import Any

import numpy as np

from zomirror.checks import choice, integer, nonnegative, positive_integer, reading, shown
from zomirror.contrast.loss import LOSSES
from zomirror.contrast.plausible import as_plausible
from zomirror.contrast.slope_guess import as_prior
from zomirror.engine.durable import stable_repr
from zomirror.errors import ArgumentError, ArgumentTypeError
from zomirror.features.place import Features
from zomirror.features.tabular.table import Table
from zomirror.features.vector import KINDS, Vector, as_names
from zomirror.methods.descent import Method
from zomirror.problem import ElasticNet

BUDGET, ARRAY_BUDGET = 10_000, 2_000
"""The default budgets: of attacks and tables, and of explanations of arrays."""
L2 = 0.15
"""The default l2, except for a Table."""
SMALLEST_BUDGET = 100
"""A smaller budget is refused: too few queries for any stage of the search."""
LARGEST_BUDGET = 1 << 53
"""A larger budget is refused: shares of it would not be exact."""
_MOST_NAMES = 10
"""Classes that an error message names."""
ATTACK_FIXES = {
    "kind": "PN",
    "signed": True,
    "loss": "hinge",
    "baseline": 0.0,
    "search": 0,
    "fewest": False,
    "answers": 1,
    "plausible": None,
    "plausibility": 1.0,
}
"""Options that attack() sets and does not take."""
ATTACK_ONLY: dict[str, Any] = {"l0": None, "scores": "all"}
"""Options that explain() does not take, and their defaults."""
LEAST = "least"
"""The `l0` that asks for the fewest pixels."""
SCORES = ("all", "label")
"""What a model tells: its scores, or only which class has the largest."""


@dataclass(frozen=True, slots=True, eq=False)
class Options:
    """The options that explain() documents, which do not depend on the input."""

    task: str = "explain"
    kind: str = "PN"
    l1: float = 0.1
    l2: Any = None
    """None: 0.15; 0 for a Table, whose distance is a sum over the columns."""
    kappa: float | None = None
    """None: a small margin that depends on the feature space, so that answers do not hang on a tie."""
    budget: int = ARRAY_BUDGET
    loss: str = "hinge"
    method: Method | None = None
    """None: the recommended method, which is told the margins and applies the loss itself."""
    label: Any = None
    """An int; before `named` has looked it up, it may be the name of a class."""
    target: Any = None
    l0: int | str | None = None
    scores: str = "all"
    search: int = 0
    fewest: bool = False
    answers: int = 1
    plausible: Any = None
    """True, rows or a function; afterwards a NearRows, a BatchCost or None."""
    plausibility: float = 1.0
    prior: Any = None
    """Slopes, a function or a model; afterwards a SlopeGuess or None."""
    features: Features = field(default_factory=Vector)
    class_names: Any = None

    def __post_init__(self) -> None:
        put = object.__setattr__
        put(self, "class_names", as_names("class_names", self.class_names))
        put(self, "kind", choice("kind", self.kind, KINDS))
        if self.l2 is None:
            put(self, "l2", 0.0 if isinstance(self.features, Table) else L2)
        put(self, "loss", choice("loss", self.loss, tuple(LOSSES)))
        for name in ("l1", "l2", "kappa", "plausibility"):
            if name != "kappa" or self.kappa is not None:
                put(self, name, nonnegative(name, getattr(self, name)))
        put(self, "budget", positive_integer("budget", self.budget))
        if self.budget < SMALLEST_BUDGET:
            raise ArgumentError(
                f"expected budget >= {SMALLEST_BUDGET}, got {self.budget}: fewer queries explain nothing"
            )
        if self.budget > LARGEST_BUDGET:
            raise ArgumentError(f"expected budget <= {LARGEST_BUDGET}, got {shown(self.budget)}")
        for name in ("label", "target"):
            value = getattr(self, name)
            put(
                self, name, str(value) if isinstance(value, str) else None if value is None else integer(name, value, 0)
            )
        put(self, "search", integer("search", self.search, 0))
        if self.target is not None and self.kind == "PP":
            raise ArgumentError("expected no target for a PP, which keeps the class: give label= to explain another")
        with reading("features", self.features):
            known = not isinstance(self.features, type) and isinstance(self.features, Features)
        if not known:
            raise ArgumentTypeError(
                f"expected features to be zm.Vector(...) or another space, got {shown(self.features)}"
            )
        put(self, "prior", as_prior(self.prior))
        if self.prior is not None and not isinstance(self.features, Vector):
            raise ArgumentError(f"expected prior with features of an array, got {type(self.features).__name__}")
        self._set_table_options()
        self._set_attack_options()

    def _set_table_options(self) -> None:
        """Check the options that only the search of a table has."""
        put = object.__setattr__
        put(self, "answers", positive_integer("answers", self.answers))
        if not isinstance(self.fewest, bool | np.bool_):
            raise ArgumentTypeError(f"expected fewest to be True or False, got {shown(self.fewest)}")
        if isinstance(self.features, Table):
            put(self, "plausible", as_plausible(self.plausible, self.features))
        elif unfit := [name for name, default in TABLE_ONLY.items() if getattr(self, name) is not default]:
            raise ArgumentError(f"expected features=zm.Table(...) with {unfit[0]}, got {type(self.features).__name__}")
        if self.plausible is not None and self.kind == "PP":
            raise ArgumentError("expected plausible for a PN, got kind='PP', whose absent columns have the baseline")

    def _set_attack_options(self) -> None:
        """Check the options that only attack() has."""
        put = object.__setattr__
        put(self, "scores", choice("scores", self.scores, SCORES))
        if self.l0 is None and self.scores == "all":
            return
        if self.l0 is not None and not (isinstance(self.l0, str) and self.l0 == LEAST):
            if isinstance(self.l0, str):
                raise ArgumentError(f'expected l0 to be a number of pixels or "{LEAST}", got {self.l0!r}')
            put(self, "l0", positive_integer("l0", self.l0))
        if self.scores == "label" and self.kappa:
            raise ArgumentError(f"expected no kappa with scores='label', got {self.kappa}: a class has no margin")
        name = "scores" if self.l0 is None else "l0"
        if not isinstance(self.features, Vector):
            raise ArgumentError(f"expected features=zm.Vector(...) with {name}, got {type(self.features).__name__}")
        if self.method is not None:
            raise ArgumentError(f"expected no method with {name}: it exchanges pixels and does not descend")

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
        if rest.get("budget") is None:
            rest["budget"] = budget_of(task, features)
        return cls(task=task, features=features, **rest)

    def named(self, known: tuple[str, ...] | None) -> Options:
        """The options with the numbers of classes that were given by name; `known` are the names the model knows."""
        names = self.class_names or known
        found: dict[str, Any] = {"class_names": names}
        for option in ("label", "target"):
            value = getattr(self, option)
            if not isinstance(value, str):
                continue
            if not names or value not in names:
                has = ", ".join(names[:_MOST_NAMES]) if names else ""
                raise ArgumentError(
                    f"expected {option} among the classes of the model ({has}), got {value!r}"
                    if names
                    else f"expected {option} as a number, because the model does not name its classes, got {value!r}: "
                    "give class_names"
                )
            found[option] = names.index(value)
        return replace(self, **found)

    @property
    def penalty(self) -> ElasticNet:
        """h(w) = l1 |w|_1 + (l2/2) |w|_2^2."""
        return ElasticNet(self.l1, self.l2)

    def record(self) -> dict[str, Any]:
        """The options as JSON: what run directories compare and explanations carry."""
        kept = ("task", "kind", "l1", "l2", "kappa", "budget", "loss", "label", "target", "search")
        record = (
            {name: getattr(self, name) for name in kept}
            | self._table_record()
            | {name: getattr(self, name) for name, usual in ATTACK_ONLY.items() if getattr(self, name) != usual}
            | {
                "method": "recommended" if self.method is None else stable_repr("method", self.method),
            }
        )
        record |= {} if self.prior is None else {"prior": self.prior.record()}
        return record | self.features.record()

    def _table_record(self) -> dict[str, Any]:
        """The options that only a table has, without those at their defaults."""
        if not isinstance(self.features, Table):
            return {}
        found: dict[str, Any] = {"fewest": bool(self.fewest), "answers": self.answers}
        if self.plausible is not None:
            found |= {"plausible": self.plausible.record(), "plausibility": self.plausibility}
        return found


def budget_of(task: str, features: Any) -> int:
    """The default budget of a task on a feature space."""
    arrays = task == "explain" and isinstance(features, Vector)
    return int(getattr(features, "default_budget", ARRAY_BUDGET if arrays else BUDGET))


TABLE_ONLY: dict[str, Any] = {"fewest": False, "answers": 1, "plausible": None}
"""Options that only the search of a table has, and their defaults."""
VECTOR = {item.name: item.name for item in fields(Vector) if item.name not in ("names", "step")} | {
    "feature_names": "names"
}
"""Keywords of explain() that are a short form of Vector, mapped to its fields."""
_NAMES = frozenset(item.name for item in fields(Options) if item.name != "task") | VECTOR.keys()
KNOWN = {
    "explain": _NAMES - ATTACK_ONLY.keys(),
    "attack": _NAMES - ATTACK_FIXES.keys(),
}
"""The options that explain_many() and attack_many() take."""
