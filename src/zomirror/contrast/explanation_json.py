"""Write explanations as JSON and read them back: no pickle, every digit kept, safe for untrusted text."""

from __future__ import annotations

import json
from dataclasses import fields
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from zomirror.errors import DataError
from zomirror.features.place import Change
from zomirror.features.tabular.frames import row_values
from zomirror.result import History, Status

if TYPE_CHECKING:
    from zomirror.contrast.explanation import Explanation

    E = TypeVar("E", bound=Explanation)

FORMAT = "zomirror explanation 1"
MAX_CHARACTERS = 1 << 28
"""Longer texts are refused (268 million characters)."""

_ARRAYS = frozenset({"x", "scores_before", "scores_after", "scale"})
_INPUTS = frozenset({"x0", "perturbed"})
_NUMBERS = frozenset({"margin", "objective", "l1_norm", "l2_norm"})
_INTEGERS = frozenset({"label", "contrast_label", "nnz", "nfev", "sent", "seed"})
_NAMES = frozenset({"feature_names", "class_names"})
_DTYPES = ("float32", "float64", "int64", "uint8")
_SPACES = ("vector", "table", "parts", "graded")


def dumps(explanation: Explanation) -> str:
    """Everything as JSON text."""
    return json.dumps(_written(explanation), allow_nan=False)


def _written(explanation: Explanation) -> dict[str, Any]:
    document: dict[str, Any] = {"format": FORMAT}
    for item in fields(explanation):
        value = getattr(explanation, item.name)
        if item.name == "others":
            document["others"] = [_written(one) for one in value]
        else:
            document[item.name] = _input(value, explanation) if item.name in _INPUTS else plain(value)
    return document


def loads(cls: type[E], text: object) -> E:
    """The explanation that `dumps` wrote; DataError says what is wrong with any other text."""
    return _read(cls, _document(text))


def _read(cls: type[E], document: dict[str, Any]) -> E:
    values: dict[str, Any] = {}
    for item in fields(cls):
        if item.name not in document:
            raise DataError(f"expected an explanation as to_json writes it, got one without {item.name}")
        try:
            if item.name == "others":
                values["others"] = tuple(
                    _read(cls, _instance(one, dict)) for one in _instance(document["others"], list)
                )
                continue
            values[item.name] = _restored(item.name, document[item.name])
        except (KeyError, TypeError, ValueError, OverflowError) as error:
            raise DataError(
                f"expected {item.name} as to_json writes it, got something else "
                f"({type(error).__name__}: {str(error)[:120]})"
            ) from None
    explanation = cls(**values)
    _refuse_unfit(explanation)
    return explanation


def _input(value: Any, explanation: Explanation) -> Any:
    """An input in JSON types: an array, a text or the row of a table."""
    if isinstance(value, str):
        return {"text": value}
    if isinstance(value, np.ndarray) and explanation.space != "table":
        return plain(value)
    return {"row": plain(row_values(value, explanation.feature_names))}


def _input_restored(value: Any) -> Any:
    """What `_input` wrote; a row becomes a dict."""
    if set(value) == {"text"}:
        return _instance(value["text"], str)
    if set(value) == {"row"}:
        return {name: _scalar(item) for name, item in _instance(value["row"], dict).items()}
    return _array(value)


def _scalar(value: Any) -> Any:
    if value is None or isinstance(value, str | bool | int | float):
        return float(value) if value in ("inf", "-inf") else value  # a missing number is None, and "nan" a text
    raise TypeError(f"{type(value).__name__} instead of the value of a column")


def plain(value: Any) -> Any:
    """`value` in JSON types; NaN and infinities become strings, because JSON has no numbers for them."""
    if isinstance(value, np.ndarray):
        flat = value.ravel().tolist()
        return {"dtype": value.dtype.name, "shape": list(value.shape), "data": [plain(item) for item in flat]}
    if isinstance(value, History):
        return {item.name: plain(getattr(value, item.name)) for item in fields(value)}
    if isinstance(value, Status):
        return value.name
    if isinstance(value, dict):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, tuple | list):
        return [plain(item) for item in value]
    if isinstance(value, np.generic):
        return plain(value.item())
    if isinstance(value, float) and not np.isfinite(value):
        return str(value)
    return value


def _document(text: object) -> dict[str, Any]:
    if not isinstance(text, str):
        raise DataError(f"expected JSON text, got {type(text).__name__}")
    if len(text) > MAX_CHARACTERS:
        raise DataError(f"expected at most {MAX_CHARACTERS} characters, got {len(text)}")
    try:
        document = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise DataError(f"expected JSON text, got something else: {error}") from None
    if not isinstance(document, dict) or document.get("format") != FORMAT:
        found = document.get("format") if isinstance(document, dict) else type(document).__name__
        raise DataError(f"expected the format {FORMAT!r}, got {str(found)[:80]!r}")
    return document


def _array(value: Any) -> NDArray[Any]:
    dtype, shape, data = value["dtype"], value["shape"], value["data"]
    if dtype not in _DTYPES:
        raise DataError(f"expected arrays of {', '.join(_DTYPES)}, got {str(dtype)[:80]!r}")
    if not isinstance(shape, list) or len(shape) > 32 or not all(_is_integer(n) and n >= 0 for n in shape):
        raise DataError(f"expected a shape of at most 32 integers >= 0, got {str(shape)[:80]}")
    size = 1
    for side in shape:  # Python integers do not overflow
        size *= side
    if not isinstance(data, list) or size != len(data):
        found = len(data) if isinstance(data, list) else type(data).__name__
        raise DataError(f"expected as many numbers as the shape {shape} says, got {found}")
    if dtype in ("int64", "uint8"):
        array = np.array([_integer(item) for item in data], dtype=dtype)
    else:
        with np.errstate(over="ignore"):
            array = np.array([_number(item) for item in data], dtype=dtype)
    array = array.reshape(shape)
    array.flags.writeable = False
    return array


def _restored(name: str, value: Any) -> Any:
    if name in _ARRAYS:
        return _array(value)
    if name in _INPUTS:
        return _input_restored(value)
    if name == "labels":
        return None if value is None else _array(value)
    if name == "listed":
        return tuple(_change(item) for item in _instance(value, list))
    if name == "history":
        history = History(**{item.name: _array(value[item.name]) for item in fields(History)})
        shapes = {getattr(history, item.name).shape for item in fields(History)}
        if shapes != {(len(history),)}:
            raise ValueError("its columns differ in length")
        return history
    if name == "status":
        return Status[value]
    if name in _NUMBERS:
        return _number(value)
    if name in _INTEGERS:
        return _integer(value)
    if name in _NAMES:
        return None if value is None else tuple(_instance(item, str) for item in _instance(value, list))
    return _instance(value, {"valid": bool, "settings": dict}.get(name, str))


def _change(value: Any) -> Change:
    name, before, after = value
    return Change(_instance(name, str), _scalar(before), _scalar(after))


def _instance(value: Any, wanted: type) -> Any:
    if not isinstance(value, wanted):
        raise TypeError(f"{type(value).__name__} instead of {wanted.__name__}")
    return value


def _number(value: Any) -> float:
    if value in ("nan", "inf", "-inf") or (isinstance(value, int | float) and not isinstance(value, bool)):
        return float(value)
    raise TypeError(f"{str(value)[:80]!r} instead of a number")


def _is_integer(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _integer(value: Any) -> int:
    if not _is_integer(value):
        raise TypeError(f"{str(value)[:80]!r} instead of an integer")
    return int(value)


def _refuse_unfit(one: Explanation) -> None:
    """DataError if shapes, labels or names contradict one another."""
    if one.space not in _SPACES:
        raise DataError(f"expected a space among {', '.join(_SPACES)}, got {one.space[:80]!r}")
    _refuse_unfit_inputs(one)
    if one.scale.shape not in ((), one.x.shape) or not (one.scale > 0).all():
        raise DataError(f"expected scale > 0, one number or of the shape {one.x.shape} of x, got {one.scale.shape}")
    classes = one.scores_before.size
    if one.scores_before.ndim != 1 or one.scores_after.shape != (classes,):
        raise DataError(
            f"expected two vectors of scores, got shapes {one.scores_before.shape} and {one.scores_after.shape}"
        )
    for name in ("label", "contrast_label"):
        # -1: not known. Without scores the label is what the caller said.
        if getattr(one, name) < -1 or 0 < classes <= getattr(one, name):
            raise DataError(f"expected {name} in -1..{classes - 1}, got {getattr(one, name)}")
    if one.kind not in ("PP", "PN"):
        raise DataError(f"expected kind PP or PN, got {one.kind[:80]!r}")
    for name, count in (("feature_names", one.x.size), ("class_names", classes)):
        names = getattr(one, name)
        if names is not None and len(names) != count:
            raise DataError(f"expected {count} {name}, got {len(names)}")


def _refuse_unfit_inputs(one: Explanation) -> None:
    """DataError if x0 and `perturbed` are not two inputs of one kind."""
    before, after = one.x0, one.perturbed
    if isinstance(before, np.ndarray) and isinstance(after, np.ndarray):
        shapes = {before.shape, after.shape} | ({one.x.shape} if one.space == "vector" else set())
        if len(shapes) > 1:
            raise DataError(f"expected x0, perturbed and x of one shape, got {before.shape}, {after.shape}, ...")
        if not np.isfinite(before).all():
            raise DataError("expected a finite x0")
    elif (
        one.space == "vector"
        or type(before) is not type(after)
        or (isinstance(before, dict) and set(before) != set(after))
    ):
        raise DataError(f"expected x0 and perturbed of one kind, got {type(before).__name__}, {type(after).__name__}")
    if one.labels is not None and (one.labels.dtype.kind not in "iu" or one.labels.size == 0):
        raise DataError("expected labels that are integers")
