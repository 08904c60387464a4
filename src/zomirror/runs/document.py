"""JSON in run directories: one text for each value, and limits on the size and depth of what is read."""

from __future__ import annotations

import dataclasses
import enum
import json
import math
from collections.abc import Mapping
from typing import TypeAlias, cast

import numpy as np

from zomirror.errors import ArgumentTypeError, RunError
from zomirror.runs.npz import digest

Json: TypeAlias = "bool | int | float | str | list[Json] | dict[str, Json] | None"

LARGEST = 4 << 20  # bytes of any JSON file in a run directory
DEEPEST = 64  # nested lists and objects


def canonical(value: object, where: str) -> Json:
    """A configuration value as JSON: dataclasses by type and fields, arrays by digest, 'inf', '-inf' and 'nan' as text.

    `where` names the value in the error for anything else (functions, open files).
    """
    if isinstance(value, enum.Enum):
        value = value.value
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or isinstance(value, (bool, int, str)):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    if isinstance(value, np.ndarray):
        return cast("Json", digest(value))
    if isinstance(value, Mapping):
        return {str(key): canonical(item, f"{where}.{key}") for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [canonical(item, f"{where}[{i}]") for i, item in enumerate(value)]
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        fields = {f.name: canonical(getattr(value, f.name), f"{where}.{f.name}") for f in dataclasses.fields(value)}
        return {"type": type(value).__name__, **fields}
    raise ArgumentTypeError(
        f"{where} is a {type(value).__name__}, which cannot be written to a run directory: expected numbers, text, "
        f"lists, mappings, dataclasses or arrays of them"
    )


def encode(value: Json) -> bytes:
    """The JSON text of a value: sorted keys, floats that read back bit for bit."""
    text = json.dumps(value, sort_keys=True, indent=1, allow_nan=False, ensure_ascii=True) + "\n"
    data = text.encode("ascii")
    if len(data) > LARGEST:
        raise RunError(
            f"expected at most {LARGEST:,} bytes of JSON, got {len(data):,}: store the large parts as arrays"
        )
    return data


def decode(data: bytes, what: str) -> dict[str, Json]:
    """The JSON object in `data`; its depth is checked first, because the parser is recursive."""
    if len(data) > LARGEST:
        raise RunError(f"{what} has {len(data):,} bytes of JSON, more than the {LARGEST:,} that are ever written")
    _check_depth(data, what)
    try:
        value = json.loads(data.decode("utf-8"), object_pairs_hook=_unique, parse_constant=_no_constant)
    except (ValueError, RecursionError) as error:
        raise RunError(f"{what} is not readable JSON: {str(error)[:200]}") from error
    if not isinstance(value, dict):
        raise RunError(f"{what} holds a JSON {type(value).__name__}, expected an object")
    return value


def differences(stored: Json, given: Json, where: str = "") -> list[tuple[str, str, str]]:
    """(dotted name, stored, given) of every value in which two configurations differ."""
    if isinstance(stored, dict) and isinstance(given, dict):
        found = []
        for key in sorted(stored.keys() | given.keys()):
            name = f"{where}.{key}" if where else key
            if key not in stored:
                found.append((name, "nothing", _short(given[key])))
            elif key not in given:
                found.append((name, _short(stored[key]), "nothing"))
            else:
                found += differences(stored[key], given[key], name)
        return found
    # Compared as text, because 1 == 1.0 == True in Python.
    return [] if encode(stored) == encode(given) else [(where, _short(stored), _short(given))]


def _short(value: Json) -> str:
    text = json.dumps(value, sort_keys=True)
    return text if len(text) <= 80 else text[:77] + "..."


def _check_depth(data: bytes, what: str) -> None:
    plain = data.replace(b"\\\\", b"").replace(b'\\"', b"")  # with escapes gone, every quote begins or ends a string
    marks = np.frombuffer(plain, np.uint8)
    outside = ~np.logical_xor.accumulate(marks == ord('"'))
    opens = (marks == ord("[")) | (marks == ord("{"))
    closes = (marks == ord("]")) | (marks == ord("}"))
    depth = np.cumsum((opens & outside).astype(np.int32) - (closes & outside), dtype=np.int32)
    if depth.max(initial=0) > DEEPEST:
        raise RunError(f"{what} nests deeper than {DEEPEST} levels, which is never written")


def _unique(pairs: list[tuple[str, Json]]) -> dict[str, Json]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a key occurs twice in one object")
    return found


def _no_constant(text: str) -> Json:
    raise ValueError(f"{text} is not JSON")
