"""Pack a frozen state into named arrays for a checkpoint, and unpack it, without pickle.

Only numbers are stored. The structure (dataclasses, tuples, arrays, numbers) comes from the initial state of the same
method, and so do fields with metadata {"stored": False}.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, is_dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from zomirror.errors import RunError

Arrays = dict[str, NDArray[Any]]


def pack(name: str, value: Any) -> Arrays:
    """The arrays of `value`, named `name`, `name.field`, `name.0` and so on."""
    if value is None:
        return {}
    if isinstance(value, np.ndarray):
        return {name: value}
    if isinstance(value, bool | int | float | np.generic):
        return {name: np.asarray(value)}
    packed: Arrays = {}
    for key, part in _parts(value):
        packed |= pack(f"{name}.{key}", part)
    return packed


def unpack(name: str, like: Any, arrays: Mapping[str, NDArray[Any]]) -> Any:
    """The value that `pack` stored, with the structure of `like`; RunError if the arrays do not fit it."""
    if like is None:
        return None
    if isinstance(like, np.ndarray):
        stored = _stored(name, arrays)
        if stored.dtype != like.dtype or stored.shape != like.shape:
            raise RunError(f"checkpoint array {name!r} is {stored.dtype} {stored.shape}, not {like.dtype} {like.shape}")
        stored.flags.writeable = False
        return stored
    if isinstance(like, bool | int | float | np.generic):
        number = _stored(name, arrays)
        if number.shape:
            raise RunError(f"checkpoint array {name!r} has shape {number.shape}, expected one number")
        return type(like)(number.item())
    parts = {key: unpack(f"{name}.{key}", part, arrays) for key, part in _parts(like)}
    if is_dataclass(like) and not isinstance(like, type):
        return replace(like, **parts)
    return type(like)(parts.values())


def _parts(value: Any) -> list[tuple[str, Any]]:
    if is_dataclass(value):
        stored = (item.name for item in fields(value) if item.metadata.get("stored", True))
        return [(name, getattr(value, name)) for name in stored]
    if isinstance(value, tuple):
        return [(str(i), part) for i, part in enumerate(value)]
    raise RunError(f"expected a state of dataclasses, tuples, arrays and numbers, got {type(value).__name__}")


def _stored(name: str, arrays: Mapping[str, NDArray[Any]]) -> NDArray[Any]:
    if name not in arrays:
        raise RunError(f"the checkpoint lacks {name!r}")
    return arrays[name]
