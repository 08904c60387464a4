"""The one object of options: checked once, made from keywords or from Vector, stored as it is compared."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

import zomirror as zm
from tests.support.contrast_models import Affine
from zomirror.contrast.options import KNOWN, Options

MODEL = Affine.draw(6)
X0 = np.full(6, 0.4)


def test_the_keywords_of_explain_are_a_short_form_of_vector() -> None:
    short = zm.explain(MODEL, X0, signed=True, fixed=[0, 2], scale=2.0, budget=200, rng=0)
    features = zm.Vector(signed=True, fixed=[0, 2], scale=2.0)
    assert zm.explain(MODEL, X0, features=features, budget=200, rng=0).to_json() == short.to_json()
    attacked = zm.attack(MODEL, X0, features=zm.Vector(signed=True, fixed=[0]), budget=200, rng=0)
    assert attacked.to_json() == zm.attack(MODEL, X0, fixed=[0], budget=200, rng=0).to_json()


@pytest.mark.parametrize(
    ("call", "given", "says"),
    [
        (zm.explain, {"features": zm.Vector(), "bounds": (0, 1)}, "features, or bounds as its short form, got both"),
        (zm.explain, {"features": "all"}, r"features to be zm.Vector\(...\) or another space, got 'all'"),
        (zm.attack, {"features": zm.Vector()}, "features with signed=True"),
        (zm.explain, {"feature_names": "ab"}, "feature_names to be a sequence of names"),
        (zm.explain, {"signed": np.array([True])}, "signed to be True or False"),
        (zm.explain, {"search": None}, "search to be an integer"),
        (zm.explain, {"kappa": "1"}, "kappa to be a number"),
        (zm.explain, {"budget": 10**400}, "expected budget <= "),
    ],
    ids=["both", "text", "one-sided attack", "names", "array as flag", "none", "text as number", "endless"],
)
def test_wrong_options_are_refused_before_the_first_query(call: Any, given: dict[str, Any], says: str) -> None:
    def never(batch: Any) -> Any:
        raise AssertionError("asked")

    with pytest.raises((zm.errors.ArgumentError, zm.errors.ArgumentTypeError), match=says):
        call(never, X0, **given)


def test_scalars_of_any_type_are_plain_numbers_from_the_door_on() -> None:
    """A long double used to spend the whole budget and then fail while it was stored."""
    given = {"l1": np.longdouble("0.1"), "l2": np.float32(0.5), "kappa": np.float16(0.25), "budget": np.int16(200)}
    options = Options.of("explain", given)
    assert [type(getattr(options, name)) for name in given] == [float, float, float, int]
    json.dumps(options.record())


def test_every_option_is_known_to_the_functions_of_many_inputs() -> None:
    assert {"l1", "kind", "features", "bounds", "feature_names"} <= KNOWN["explain"]
    assert KNOWN["explain"] - KNOWN["attack"] == (
        {"kind", "signed", "loss", "baseline", "search", "fewest", "answers", "plausible", "plausibility"}
    )
