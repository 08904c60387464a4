"""zomirror as a method of scipy.optimize.minimize."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.optimize import OptimizeResult

from zomirror.arrays import Array
from zomirror.descent import Method
from zomirror.errors import ArgumentError
from zomirror.minimize import minimize
from zomirror.result import Intermediate


def scipy_method(
    method: Method | None = None, *, l1: float = 0.0, l2: float = 0.0, budget: int = 10_000, rng: object = None
) -> Callable[..., OptimizeResult]:
    """A `method=` for scipy.optimize.minimize; F = fun + l1 |x|_1 + (l2/2) |x|_2^2 is what it minimises.

    The function is called one point at a time, as SciPy's contract has it. `options` of scipy.optimize.minimize
    override `budget` and `rng` and may add `maxiter`, `max_time`, `target` and `returns`.
    """

    def solve(
        fun: Callable[..., Any],
        x0: Any,
        args: tuple[Any, ...] = (),
        *,
        bounds: object = None,
        constraints: object = (),
        callback: Callable[[OptimizeResult], object] | None = None,
        **options: Any,
    ) -> OptimizeResult:
        for derivative in ("jac", "hess", "hessp"):
            options.pop(derivative, None)  # SciPy passes them always; values are all we use
        if constraints:
            raise ArgumentError("expected no constraints, only bounds: this method keeps x in a box")
        unknown = sorted(set(options) - _OPTIONS)
        if unknown:
            raise ArgumentError(f"expected options among {', '.join(sorted(_OPTIONS))}, got {', '.join(unknown)}")
        settings: dict[str, Any] = {"budget": budget, "rng": rng} | options
        result = minimize(
            lambda x: _scalar(fun(np.copy(x), *args)),
            np.asarray(x0),
            l1=l1,
            l2=l2,
            bounds=bounds,
            method=method,
            vectorized=False,
            callback=None if callback is None else lambda latest: callback(_as_scipy(latest)),
            **settings,
        )
        fields = ("x", "fun", "nfev", "nit", "success", "message", "stationarity", "seed", "history")
        return _scipy_result(status=result.status.name, **{name: getattr(result, name) for name in fields})

    return solve


_OPTIONS = {"budget", "rng", "maxiter", "max_time", "target", "returns"}


def _as_scipy(latest: Intermediate) -> OptimizeResult:
    return _scipy_result(x=np.copy(latest.x), fun=latest.fun, nfev=latest.nfev, nit=latest.nit)


def _scipy_result(**fields: Any) -> OptimizeResult:
    result = OptimizeResult()
    result.update(fields)
    return result


def _scalar(value: Any) -> Array:
    """SciPy lets a function return an array of one element."""
    reshaped: Array = np.asarray(value).reshape(())
    return reshaped
