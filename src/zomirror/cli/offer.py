"""What `zomirror serve` and `zomirror studio` offer: a model, a feature space and inputs to begin with."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from zomirror.cli.arguments import ExplainerOptions, SpaceChoice, numbers, shape_of
from zomirror.cli.inputs import Input, TableOptions, read_inputs
from zomirror.cli.model import LoadedModel, load_model, public
from zomirror.errors import ArgumentError
from zomirror.features.default import LARGE
from zomirror.features.image_axes import image_axes
from zomirror.schema.parameter import REGIONS, TABLE, VECTOR, WORDS

if TYPE_CHECKING:
    from zomirror.schema.explainer import Explainer

RULES = ("fixed", "increasing", "decreasing", "categorical")


@dataclass(frozen=True, slots=True, eq=False)
class Offer:
    """A model and its inputs, as typed."""

    typed: ExplainerOptions
    model: LoadedModel
    inputs: list[Input]
    space: str

    @classmethod
    def of(cls, typed: ExplainerOptions) -> Offer:
        """Load the model and read the data."""
        model = _model_of(typed)
        data = typed.data or (["digits:all"] if typed.model == "lenet" and typed.features is None else [])
        table = TableOptions(tuple(typed.drop or ()), tuple(typed.categorical or ()), framed=True)
        inputs = read_inputs(data, shape=shape_of(typed.shape) or model.shape, table=table)
        return cls(typed, model, inputs, cls._space(typed, model, inputs))

    @staticmethod
    def _space(typed: ExplainerOptions, model: LoadedModel, inputs: list[Input]) -> str:
        """As said, or as the inputs and the model suggest."""
        if typed.features is not None:
            return typed.features.value
        if any(one.frame is not None for one in inputs):
            return TABLE
        if any(isinstance(one.x, str) for one in inputs):
            return WORDS
        shape = shape_of(typed.shape) or model.shape or (np.shape(inputs[0].x) if inputs else None)
        axes = None if shape is None else image_axes(shape)
        large = axes is not None and shape is not None and shape[axes.rows] * shape[axes.columns] > LARGE
        return REGIONS if large else VECTOR

    @property
    def shape(self) -> tuple[int, ...] | None:
        """The shape of one array: as typed, as the model says, or that of the first input."""
        if self.space in (TABLE, WORDS):
            return None
        return shape_of(self.typed.shape) or self.model.shape or (np.shape(self.inputs[0].x) if self.inputs else None)

    def explainer(self) -> Explainer:
        """The model with these features."""
        from zomirror.schema.explainer import Explainer

        frames = [one.frame for one in self.inputs if one.frame is not None]
        rules = {name: getattr(self.typed, name) for name in RULES if getattr(self.typed, name)}
        if rules and self.space != TABLE:
            raise ArgumentError(f"expected --{next(iter(rules))} with the rows of a .csv as DATA, got {self.space}")
        return Explainer(
            self.model.classifier,
            self.space,
            frame=frames[0] if frames else None,
            shape=self.shape,
            mean=numbers("--mean", self.typed.mean) or self.model.mean,
            std=numbers("--std", self.typed.std) or self.model.std,
            class_names=tuple(self.typed.class_names.split(",")) if self.typed.class_names else None,
            most=self.typed.budget,
            defaults=rules,
        )


def _model_of(typed: ExplainerOptions) -> LoadedModel:
    """The model; at a URL, one that takes rows of a table or texts is asked with these, any other with arrays."""
    rows = typed.features in (SpaceChoice.TABLE, SpaceChoice.WORDS) or any(
        text.lower().partition(":")[0].endswith((".csv", ".txt")) for text in typed.data or ()
    )
    if not rows or not typed.model.lower().startswith(("http://", "https://")):
        return load_model(typed, typed.model)
    if typed.remote_model:
        raise ArgumentError(
            "expected no --remote-model for rows of a table and texts, which are sent as "
            '{"instances": [...]}: give the whole URL'
        )
    from zomirror.schema.remote_rows import RemoteRows

    return LoadedModel(public(typed.model), RemoteRows.of(typed.model, token_env=typed.token_env))
