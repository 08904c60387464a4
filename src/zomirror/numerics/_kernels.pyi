"""The compiled loops of _kernels.c; arrays are contiguous and of one float type, `itemsize` its size."""

from numpy import uint8, uint32, uint64
from numpy.typing import NDArray

from zomirror.numerics.arrays import Array, Indices, Values

REVISION: int

def words(
    out: NDArray[uint64] | NDArray[uint8],
    key0: int,
    key1: int,
    c0: int,
    c1: int,
    c2: int,
    c3: int,
    rows: int,
    jump: int,
    count: int,
    /,
) -> None: ...
def add_signs(
    out: Array,
    base: Array,
    bits: NDArray[uint8],
    scale: float,
    key0: int,
    key1: int,
    c0: int,
    c1: int,
    c2: int,
    c3: int,
    past: bool,
    itemsize: int,
    /,
) -> None: ...
def sum_signs(total: Array, weights: Array, bits: NDArray[uint8], itemsize: int, /) -> None: ...
def draw_groups(
    labels: Indices,
    moves: Array,
    x: Array,
    key0: int,
    key1: int,
    c0: int,
    c1: int,
    c2: int,
    c3: int,
    groups: int,
    share: float,
    rest: float,
    itemsize: int,
    /,
) -> None: ...
def normals(
    out: Array,
    width: Array,
    core: NDArray[uint32] | NDArray[uint64],
    height: Array,
    key0: int,
    key1: int,
    c0: int,
    c1: int,
    c2: int,
    c3: int,
    rows: int,
    itemsize: int,
    /,
) -> None: ...
def add_groups(
    out: Array,
    base: Array,
    labels: Indices,
    moves: Array,
    free: Indices | None,
    radius: float,
    start: int,
    itemsize: int,
    /,
) -> None: ...
def mend_groups(
    g: Array,
    after: Array,
    labels: Indices,
    u: Array,
    w: Array,
    y: Values,
    theta: float,
    gain: float,
    itemsize: int,
    /,
) -> float: ...
def entropy_step(
    y: Array,
    x: Array,
    g: Array,
    lower: Array | float,
    upper: Array | float,
    d: float,
    eta: float,
    a: float,
    b: float,
    top: float,
    itemsize: int,
    /,
) -> None: ...
def sums(x: Array, y: Array | None, itemsize: int, /) -> tuple[float, float]: ...
def step_norms(x: Array, y: Array, itemsize: int, /) -> tuple[float, float, float]: ...
def least_points(
    points: Values,
    multipliers: Values,
    rows: Values,
    need: Values,
    lower: Values,
    upper: Values,
    k: int,
    l1: float,
    l2: float,
    sweeps: int,
    /,
) -> None: ...
def cholesky(A: Values, B: Values, n: int, /) -> bool: ...
def inner(out: Values, A: Values, B: Values, n: int, /) -> None: ...
def convolve(out: Values, rows: Values, taps: Values, length: int, after: int, /) -> None: ...
def row_sums(out: Values, X: Array, d: int, itemsize: int, /) -> None: ...
