"""One schema: what it says is what explain(), the features and the command line say."""

from __future__ import annotations

import inspect
from dataclasses import fields
from typing import Any

import pytest
import typer

import zomirror as zm
from zomirror.cli import app
from zomirror.cli.arguments import RegionsChoice, SpaceChoice
from zomirror.cli.commands.explain import KindChoice, LossChoice
from zomirror.errors import ArgumentError, ArgumentTypeError
from zomirror.schema.parameter import PARAMETERS, SPACES, of_space, parameter, parsed

FEATURES = {"vector": zm.Vector, "table": zm.Table, "regions": zm.Regions, "words": zm.Words, "windows": zm.Windows}
OWN = {"regions", "fixed"}
"""Rules that the schema translates for pictures."""


def test_options_are_keywords_of_explain_with_its_defaults() -> None:
    known = inspect.signature(zm.explain).parameters
    for one in PARAMETERS:
        if not one.rule:
            name = "rng" if one.name == "seed" else one.name
            assert known[name].default == one.default, one.name


def test_rules_are_fields_of_their_features() -> None:
    for one in PARAMETERS:
        for space in one.spaces if one.rule and one.name not in OWN else ():
            assert one.name in {field.name for field in fields(FEATURES[space])}, (one.name, space)


def test_names_are_unique_and_of_known_spaces() -> None:
    assert len({one.name for one in PARAMETERS}) == len(PARAMETERS)
    assert tuple(FEATURES) == SPACES == tuple(SpaceChoice)
    assert all(set(one.spaces) <= set(SPACES) for one in PARAMETERS)


def test_the_command_line_offers_the_same_choices_and_says_the_same() -> None:
    assert tuple(RegionsChoice) == parameter("regions").choices
    assert tuple(LossChoice) == parameter("loss").choices
    assert set(KindChoice) - {"both"} == set(parameter("kind").choices)
    commands: Any = typer.main.get_command(app)
    options = {one.name: one for one in commands.commands["explain"].params}
    differing = ("bounds", "baseline", "fewest", "absent", "length")  # of a .csv, or not of the command line
    for one in PARAMETERS:
        if one.name not in differing:
            assert options[one.name].help.startswith(one.help), one.name


@pytest.mark.parametrize("space", SPACES)
def test_what_is_read_is_split_into_options_and_rules(space: str) -> None:
    given = {one.name: one.default for one in of_space(space)}
    options, rules = parsed(given, space)
    assert set(options) | set(rules) == {name for name, value in given.items() if value is not None}
    assert all(not parameter(name).rule for name in options)
    assert all(parameter(name).rule for name in rules)


@pytest.mark.parametrize(
    ("given", "error", "sentence"),
    [
        ([], ArgumentTypeError, "expected parameters as an object"),
        ({"method": "x"}, ArgumentError, "got 'method': leave it out"),
        ({"increasing": ["a"]}, ArgumentError, "got 'increasing'"),
        ({"budget": 1.5}, ArgumentTypeError, "expected budget as an integer, got 1.5"),
        ({"budget": True}, ArgumentTypeError, "expected budget as an integer, got True"),
        ({"budget": 99}, ArgumentError, "expected budget >= 100, got 99"),
        ({"l1": float("nan")}, ArgumentError, "expected l1 >= 0, got nan"),
        ({"kind": "pp"}, ArgumentError, "expected kind among PN, PP, got 'pp'"),
        ({"signed": 1}, ArgumentTypeError, "expected signed as true or false, got 1"),
        ({"bounds": [0, "1"]}, ArgumentTypeError, "expected bounds as a list of numbers, got '1' in it"),
        ({"target": 1.5}, ArgumentTypeError, "expected target as the number or the name of a class"),
    ],
)
def test_what_is_wrong_is_named(given: Any, error: type[Exception], sentence: str) -> None:
    with pytest.raises(error) as caught:
        parsed(given, "vector")
    assert sentence in str(caught.value)


def test_a_list_of_columns_holds_names() -> None:
    with pytest.raises(ArgumentTypeError, match="expected increasing as a list of columns, got 3 in it"):
        parsed({"increasing": ["age", 3]}, "table")
