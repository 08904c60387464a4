"""The settings: thirteen of the paper and the recommended method, as printed and as in the authors' code."""

from __future__ import annotations

import math

import pytest

import zomirror as zm
from zomirror.errors import ArgumentError
from zomirror.paper.settings import ALGORITHMS, AUTHORS, PAPER, PRINTED, RECOMMENDED, Algorithm, LooseRadius


def test_there_are_thirteen_settings_of_the_paper_and_the_recommended_method() -> None:
    assert len(PAPER) == 13
    assert (*PAPER, RECOMMENDED) == ALGORITHMS
    assert [one.eta for one in PAPER if one.family == "psgd"] == [1, 10, 100, 1_000, 10_000, 100_000]
    for one in ALGORITHMS:
        assert Algorithm.named(one.name) == one
    for name in ("adam", "expmd", "adaexpmd-3", ""):
        with pytest.raises(ArgumentError, match="expected an algorithm"):
            Algorithm.named(name)


def test_the_methods_are_those_of_the_page() -> None:
    assert PRINTED.method(Algorithm("adaexpmd")) == zm.methods.zo_ada_expmd(200)
    assert PRINTED.method(Algorithm("expmd", 10.0)) == zm.methods.zo_expmd(10.0, 200)
    # The paper prints eta |x - x_t|^2, its code has half of that: ours has the half written out.
    assert PRINTED.method(Algorithm("psgd", 10.0)) == zm.methods.zo_psgd(20.0, 200)
    assert AUTHORS.method(Algorithm("psgd", 10.0)) == zm.methods.zo_psgd(10.0, 200)
    assert AUTHORS.method(Algorithm("adaexpmd")) == zm.methods.zo_ada_expmd(200, c=1.0, radius=LooseRadius())
    assert LooseRadius()(784, 200) == pytest.approx(math.sqrt(4 * math.e * math.log(783) / 200) / 784)
    assert PRINTED.method(RECOMMENDED) is None
