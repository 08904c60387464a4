"""The options of an explanation and the rules of its features: name, type, help, default.

The command line takes its help and choices from here, the model server reads the parameters of a request with `parsed`,
and the studio draws its controls from `document`. To add one, add it here and to the function or class that takes it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from zomirror.errors import ArgumentError, ArgumentTypeError

VECTOR, TABLE, REGIONS, WORDS, WINDOWS = SPACES = ("vector", "table", "regions", "words", "windows")
PIXELS = "pixels"
"""The choice of `regions` that explains single pixels: the space `vector`."""


@dataclass(frozen=True, slots=True)
class Parameter:
    """One thing that can be said about an explanation."""

    name: str
    kind: str
    """number, integer, flag, choice, class (a number or a name), names, numbers, text or fixed (names, or a mask)."""
    help: str
    default: Any = None
    least: float | None = None
    choices: tuple[str, ...] = ()
    spaces: tuple[str, ...] = SPACES
    """The feature spaces that have it."""
    rule: bool = False
    """Whether it says what may change, and not how the search goes."""

    def document(self) -> dict[str, Any]:
        """The parameter as JSON, for a page that draws a control for it."""
        names = ("name", "kind", "help", "default", "least", "choices")
        return {name: getattr(self, name) for name in names}


PARAMETERS = (
    Parameter(
        "kind",
        "choice",
        "PP: a part that alone keeps the class. PN: a change that gives another class.",
        "PN",
        choices=("PN", "PP"),
    ),
    Parameter("target", "class", "The class that a PN or an attack must reach. Default: any other class."),
    Parameter("label", "class", "The class of the input, by number or name. Default: the predicted class."),
    Parameter(
        "budget",
        "integer",
        "Queries that each search may use. Default 2,000 for arrays, 10,000 for tables and attacks, 300 for parts.",
        least=100,
    ),
    Parameter("l1", "number", "Weight of |x|_1: larger means sparser.", 0.1, 0),
    Parameter(
        "l2",
        "number",
        "Weight of |x|_2^2 / 2: larger means smaller entries. Of explain 0.15 by default, 0 for table rows.",
        least=0,
    ),
    Parameter(
        "kappa",
        "number",
        "The margin by which a class must win, in units of the scores; by default a safe one.",
        least=0,
    ),
    Parameter("seed", "integer", "The same seed gives the same answer.", 0, 0),
    Parameter(
        "loss",
        "choice",
        "The loss that the search minimises.",
        "hinge",
        choices=("hinge", "softplus"),
        spaces=(VECTOR,),
    ),
    Parameter(
        "search",
        "integer",
        "Penalty weights to try within the budget; the sparsest answer is kept.",
        0,
        0,
        spaces=(VECTOR,),
    ),
    Parameter(
        "answers",
        "integer",
        "For a table: PNs that differ in the columns they change.",
        1,
        1,
        spaces=(TABLE,),
    ),
    Parameter("fewest", "flag", "For a table: change as few columns as possible.", default=False, spaces=(TABLE,)),
    Parameter(
        "fixed",
        "fixed",
        "A column that must not change; of a picture, a mask of its pixels.",
        spaces=(TABLE, VECTOR, REGIONS),
        rule=True,
    ),
    Parameter("increasing", "names", "A column that may only rise.", spaces=(TABLE,), rule=True),
    Parameter("decreasing", "names", "A column that may only fall.", spaces=(TABLE,), rule=True),
    Parameter("categorical", "names", "A column whose numbers are names.", spaces=(TABLE,), rule=True),
    Parameter("signed", "flag", "Let a PN lower features, too.", default=False, spaces=(VECTOR,), rule=True),
    Parameter("bounds", "numbers", "Range of the inputs. Default 0,1.", spaces=(VECTOR,), rule=True),
    Parameter("baseline", "number", "The value of an absent feature. Default 0.", spaces=(VECTOR,), rule=True),
    Parameter(
        "regions",
        "choice",
        "Explain a picture by cells of a grid, by superpixels or by single pixels. Default: the grid for pictures of "
        "more than 4,096 pixels.",
        choices=("grid", "superpixels", PIXELS),
        spaces=(REGIONS, VECTOR),
        rule=True,
    ),
    Parameter("absent", "text", "What stands for an absent word. Default: nothing.", "", spaces=(WORDS,), rule=True),
    Parameter("length", "integer", "The length of a stretch of time.", least=1, spaces=(WINDOWS,), rule=True),
)
"""All of them, in the order of the page."""
_BY_NAME = {one.name: one for one in PARAMETERS}
_TYPES: dict[str, tuple[tuple[type, ...], str]] = {
    "number": ((int, float), "a number"),
    "integer": ((int,), "an integer"),
    "flag": ((bool,), "true or false"),
    "choice": ((str,), "a word"),
    "class": ((int, str), "the number or the name of a class"),
    "names": ((list, tuple), "a list of columns"),
    "numbers": ((list, tuple), "a list of numbers"),
    "text": ((str,), "a text"),
    "fixed": ((list, tuple), "a list of columns, or a mask of the picture in rows of 0 and 1"),
}


def parameter(name: str) -> Parameter:
    """The parameter of this name."""
    return _BY_NAME[name]


def of_space(space: str) -> tuple[Parameter, ...]:
    """The parameters that a feature space has."""
    return tuple(one for one in PARAMETERS if space in one.spaces)


def parsed(given: object, space: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """The options of the search and the rules of the features among parameters in JSON types; null means not given.

    Names and types are checked here, values by explain() and the features.
    """
    if not isinstance(given, Mapping):
        raise ArgumentTypeError(f"expected parameters as an object of names and values, got {type(given).__name__}")
    known = {one.name: one for one in of_space(space)}
    if unknown := [str(name) for name in given if name not in known]:
        raise ArgumentError(
            f"expected parameters of {space} among {', '.join(known)}, got {_shown(unknown[0])}: leave it out"
        )
    options: dict[str, Any] = {}
    rules: dict[str, Any] = {}
    for name, value in given.items():
        if value is not None:
            (rules if known[name].rule else options)[name] = _checked(known[name], value)
    return options, rules


def _checked(one: Parameter, value: Any) -> Any:
    """The value, if it has the type of the parameter."""
    types, said = _TYPES[one.kind]
    if not isinstance(value, types) or (isinstance(value, bool) and one.kind != "flag"):
        raise ArgumentTypeError(f"expected {one.name} as {said}, got {_shown(value)}")
    given: Any = value  # mypy narrows `value` to object
    if one.choices and value not in one.choices:
        raise ArgumentError(f"expected {one.name} among {', '.join(one.choices)}, got {_shown(value)}")
    if one.least is not None and not given >= one.least:
        raise ArgumentError(f"expected {one.name} >= {one.least:g}, got {_shown(value)}")
    if one.kind in ("names", "numbers"):
        _all(one, given, str if one.kind == "names" else (int, float))
    return given


def _all(one: Parameter, values: Iterable[Any], types: type | tuple[type, ...]) -> None:
    for value in values:
        if not isinstance(value, types) or isinstance(value, bool):
            raise ArgumentTypeError(f"expected {one.name} as {_TYPES[one.kind][1]}, got {_shown(value)} in it")


def _shown(value: object) -> str:
    """The beginning of a value; numpy, which zomirror.checks needs, is not imported for the help of a command."""
    return repr(value)[:60]
