"""zomirror as a method of scipy.optimize.minimize."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from zomirror.errors import ArgumentError
from zomirror.methods.descent import Method
from zomirror.methods.presets import zo_ada_expmd
from zomirror.minimization import minimize
from zomirror.numerics.arrays import Array
from zomirror.result import Intermediate

if TYPE_CHECKING:
    from scipy.optimize import OptimizeResult


def scipy_method(
    method: Method | None = None, *, l1: float = 0.0, l2: float = 0.0, budget: int = 10_000, rng: object = None
) -> Callable[..., OptimizeResult]:
    """Return a `method=` for scipy.optimize.minimize that minimises F = fun + l1 |x|_1 + (l2/2) |x|_2^2.

    The function is called with one point at a time. The `options` of scipy.optimize.minimize may be `budget`, `rng`,
    `batch_size`, `maxiter`, `max_time`, `target` and `returns`, and take precedence over the arguments here.

    Parameters
    ----------
    method : Method, optional
        By default the recommended method, or ZO-AdaExpMD where the options have a `batch_size`.
    l1, l2 : float
        The weights of the penalty.
    budget : int
        The number of function values.
    rng : int, Generator or None
        The seed.
    """

    def solve(
        fun: Callable[..., Any],
        x0: Any,
        args: tuple[Any, ...] = (),
        *,
        bounds: object = None,
        constraints: object = (),
        callback: Callable[..., object] | None = None,
        **options: Any,
    ) -> OptimizeResult:
        for derivative in ("jac", "hess", "hessp"):
            options.pop(derivative, None)  # SciPy always passes them; only values are used
        if constraints:
            raise ArgumentError("expected no constraints, only bounds: this method keeps x in a box")
        unknown = sorted(set(options) - _OPTIONS)
        if unknown:
            raise ArgumentError(f"expected options among {', '.join(sorted(_OPTIONS))}, got {', '.join(unknown)}")
        settings: dict[str, Any] = {"budget": budget, "rng": rng, "method": method} | options
        if "batch_size" in settings:
            settings["method"] = _with_batch_size(method, settings.pop("batch_size"))
        result = minimize(
            lambda x: _scalar(fun(np.copy(x), *args)),
            np.asarray(x0),
            l1=l1,
            l2=l2,
            bounds=bounds,
            vectorized=False,
            callback=None if callback is None else _as_ours(callback),
            **settings,
        )
        fields = ("x", "fun", "nfev", "nit", "success", "message", "stationarity", "seed", "history")
        return _scipy_result(status=result.status.name, **{name: getattr(result, name) for name in fields})

    return solve


_OPTIONS = {"batch_size", "budget", "rng", "maxiter", "max_time", "target", "returns"}


def _with_batch_size(method: Any, batch_size: int) -> Method:
    if method is None:
        return zo_ada_expmd(batch_size)
    try:
        resized: Method = replace(method, estimator=replace(method.estimator, batch_size=batch_size))
    except (AttributeError, TypeError):
        raise ArgumentError(f"expected a method whose estimator has a batch_size, got {method!r}") from None
    return resized


def _as_ours(callback: Callable[..., object]) -> Callable[[Intermediate], object]:
    """SciPy's two kinds of callbacks: the only parameter is named `intermediate_result`, or it is x."""
    if set(inspect.signature(callback).parameters) == {"intermediate_result"}:
        return lambda latest: callback(intermediate_result=_as_scipy(latest))
    return lambda latest: callback(np.copy(latest.x))


def _as_scipy(latest: Intermediate) -> OptimizeResult:
    return _scipy_result(x=np.copy(latest.x), fun=latest.fun, nfev=latest.nfev, nit=latest.nit)


def _scipy_result(**fields: Any) -> OptimizeResult:
    from scipy.optimize import OptimizeResult  # slow to import; a caller has imported it already

    result = OptimizeResult()
    result.update(fields)
    return result


def _scalar(value: Any) -> Array:
    """SciPy lets a function return an array of one element."""
    reshaped: Array = np.asarray(value).reshape(())
    return reshaped
