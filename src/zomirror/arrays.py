"""The array types that the core speaks of."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.floating[Any]]
"""float32 or float64."""
Values = NDArray[np.float64]
"""What the black box answered, one number a row."""
Indices = NDArray[np.intp]
"""Which coordinates."""
