"""What is asked of an explanation: every option of explain(), checked before anything is spent."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from zomirror.checks import choice, nonnegative, positive_integer
from zomirror.contrast.explanation import as_names
from zomirror.contrast.progress import LOSSES, Aim
from zomirror.errors import ArgumentError, ArgumentTypeError
from zomirror.features.vector import KINDS, Setting, setting_of
from zomirror.methods.descent import Method
from zomirror.problem import ElasticNet

SMALLEST_BUDGET = 100


@dataclass(frozen=True, slots=True, eq=False)
class Wanted:
    """The options of explain(), which says what each means."""

    kind: str = "PN"
    l1: float = 0.1
    l2: float = 0.15
    kappa: float = 0.0
    bounds: object = (0.0, 1.0)
    budget: int = 10_000
    loss: str = "hinge"
    method: Method | None = None
    label: int | None = None
    target: int | None = None
    baseline: object = 0.0
    fixed: object = None
    signed: bool = False
    scale: object = None
    mean: object = None
    std: object = None
    search: int = 0
    feature_names: Any = None
    class_names: Any = None

    def __post_init__(self) -> None:
        for name in ("feature_names", "class_names"):
            object.__setattr__(self, name, as_names(name, getattr(self, name)))
        choice("kind", self.kind, KINDS)
        choice("loss", self.loss, tuple(LOSSES))
        ElasticNet(self.l1, self.l2)
        nonnegative("kappa", self.kappa)
        if positive_integer("budget", self.budget) < SMALLEST_BUDGET:
            raise ArgumentError(
                f"expected budget >= {SMALLEST_BUDGET}, got {self.budget}: fewer queries explain nothing"
            )
        for name in ("label", "target", "search"):
            _class_number(name, getattr(self, name))
        if self.target is not None and self.kind == "PP":
            raise ArgumentError("expected no target for a PP, which keeps the class: give label= to explain another")

    def setting(self, x0: object) -> Setting:
        """The decision set and start for this input."""
        return setting_of(
            self.kind,
            x0,
            bounds=self.bounds,
            baseline=self.baseline,
            fixed=self.fixed,
            signed=self.signed,
            scale=self.scale,
            mean=self.mean,
            std=self.std,
        )

    def refuse_misnamed(self, place: Setting) -> None:
        """Refuse feature names that are not one for each feature."""
        if self.feature_names is not None and len(self.feature_names) != place.d:
            raise ArgumentError(f"expected {place.d} feature_names, got {len(self.feature_names)}")

    def aim(self, seed: int, radius: float | None) -> Aim:
        """What the search needs to know."""
        return Aim(
            penalty=ElasticNet(self.l1, self.l2),
            kappa=float(self.kappa),
            loss=self.loss,
            budget=self.budget,
            method=self.method,
            seed=seed,
            radius=radius,
            label=self.label,
            target=self.target,
            search=self.search,
            classes=0 if self.class_names is None else len(self.class_names),
        )

    def record(self) -> dict[str, Any]:
        """What is written beside the answer, so that it can be repeated."""
        kept = ("l1", "l2", "kappa", "budget", "loss", "label", "target", "signed", "search")
        record = {name: getattr(self, name) for name in kept} | {
            "method": "recommended" if self.method is None else repr(self.method)
        }
        normalised = {name: np.asarray(getattr(self, name)).tolist() for name in ("mean", "std")}
        return record | (normalised if self.mean is not None else {})


def _class_number(name: str, value: object) -> None:
    if value is None:
        return
    if isinstance(value, bool) or not isinstance(value, int | np.integer):
        raise ArgumentTypeError(f"expected {name} to be an integer, got {value!r}")
    if value < 0:
        raise ArgumentError(f"expected {name} >= 0, got {value}")
