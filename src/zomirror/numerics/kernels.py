"""The compiled inner loops of _kernels.c, if this installation has them.

They give the numbers that numpy gives, bit for bit, so it never matters to a run whether they are there: a run begun
with them may go on without. They are compiled when the package is installed on a machine with a C compiler.
"""

from __future__ import annotations

import os
from importlib import import_module
from types import ModuleType
from typing import Any

import numpy as np
from numpy.typing import NDArray

VARIABLE = "ZOMIRROR_KERNELS"
"""Set to 0 in the environment to do without them."""
REVISION = 6
"""Of the calls that this version makes; a library that was left behind by another one is not used."""


def found() -> ModuleType | None:
    """The compiled module, or None where numpy must do."""
    if os.environ.get(VARIABLE) == "0":
        return None
    try:
        library = import_module("zomirror.numerics._kernels")
    except ImportError:
        return None
    return library if getattr(library, "REVISION", None) == REVISION else None


compiled = found()
PLAIN = 0x0101
"""What `flags.num` has of a contiguous and aligned array: numpy's NPY_ARRAY_C_CONTIGUOUS and NPY_ARRAY_ALIGNED."""
FLOATS = frozenset({np.dtype(np.float32), np.dtype(np.float64)})


def suited(first: NDArray[Any], *others: NDArray[Any]) -> bool:
    """Whether these arrays may be given to them: of one float type of this machine, contiguous and aligned."""
    dtype = first.dtype
    if dtype not in FLOATS or first.flags.num & PLAIN != PLAIN:
        return False
    for array in others:  # noqa: SIM110 - asked some ten times a batch, where a generator takes twice as long
        if array.flags.num & PLAIN != PLAIN or array.dtype != dtype:
            return False
    return True


def there() -> ModuleType:
    """The compiled module, where it is known to be there."""
    if compiled is None:
        raise ImportError("expected the compiled loops, which this installation does not have")
    return compiled
