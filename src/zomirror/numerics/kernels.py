"""The compiled inner loops of _kernels.c, if this installation has them.

They are compiled when the package is installed on a machine with a C compiler. They give the same bits as the numpy
code, so a run that was started with them can be resumed without them.
"""

from __future__ import annotations

import os
from importlib import import_module
from types import ModuleType
from typing import Any

import numpy as np
from numpy.typing import NDArray

VARIABLE = "ZOMIRROR_KERNELS"
"""The environment variable that switches the compiled loops off when it is 0."""
REVISION = 8
"""The version of the interface; a library that was compiled for another one is ignored."""


def found() -> ModuleType | None:
    """The compiled module, or None."""
    if os.environ.get(VARIABLE) == "0":
        return None
    try:
        library = import_module("zomirror.numerics._kernels")
    except ImportError:
        return None
    return library if getattr(library, "REVISION", None) == REVISION else None


compiled = found()
PLAIN = 0x0101
"""NPY_ARRAY_C_CONTIGUOUS and NPY_ARRAY_ALIGNED in `flags.num` of an array."""
FLOATS = frozenset({np.dtype(np.float32), np.dtype(np.float64)})


def suited(first: NDArray[Any], *others: NDArray[Any]) -> bool:
    """Whether the compiled loops take these arrays: all float32 or all float64, contiguous and aligned."""
    dtype = first.dtype
    if dtype not in FLOATS or first.flags.num & PLAIN != PLAIN:
        return False
    for array in others:  # noqa: SIM110 - called ten times a batch, and any() with a generator takes twice as long
        if array.flags.num & PLAIN != PLAIN or array.dtype != dtype:
            return False
    return True


def there() -> ModuleType:
    """The compiled module; ImportError if there is none."""
    if compiled is None:
        raise ImportError("expected the compiled loops, but this installation has none")
    return compiled
