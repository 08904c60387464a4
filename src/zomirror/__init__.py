"""Explain any model that can only be asked, and minimise any function that can only be asked.

    import zomirror as zm
    explanation = zm.explain(model, image, kind="PN", rng=0)

    result = zm.minimize(fun, x0, l1=0.1, bounds=(0, 1), budget=10_000, rng=0)

`explain` asks a classifier what it looked at; `minimize` asks a function for values and finds a sparse minimiser of
f(x) + l1 |x|_1 + (l2/2) |x|_2^2 over a box; with `Optimizer` the caller asks the function.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from zomirror.version import __version__

if TYPE_CHECKING:
    from zomirror import datasets, errors, methods, models, runs
    from zomirror.classifiers import (
        above,
        as_classifier,
        between,
        command_classifier,
        command_function,
        http_classifier,
        onnx_classifier,
    )
    from zomirror.contrast import Explanation, attack, attack_many, changes_frame, explain, explain_many
    from zomirror.engine.retry import Retry
    from zomirror.features import Groups, Regions, Table, Vector, Windows, Words
    from zomirror.minimization import minimize
    from zomirror.optimizer import Optimizer
    from zomirror.parallel import Workers
    from zomirror.result import Result, Status
    from zomirror.scipy_adapter import scipy_method

__all__ = [
    "Explanation",
    "Groups",
    "Optimizer",
    "Regions",
    "Result",
    "Retry",
    "Status",
    "Table",
    "Vector",
    "Windows",
    "Words",
    "Workers",
    "__version__",
    "above",
    "as_classifier",
    "attack",
    "attack_many",
    "between",
    "changes_frame",
    "command_classifier",
    "command_function",
    "datasets",
    "errors",
    "explain",
    "explain_many",
    "http_classifier",
    "methods",
    "minimize",
    "models",
    "onnx_classifier",
    "runs",
    "scipy_method",
]

_HOMES = {
    "classifiers": (
        "above",
        "as_classifier",
        "between",
        "command_classifier",
        "command_function",
        "http_classifier",
        "onnx_classifier",
    ),
    "contrast": ("Explanation", "attack", "attack_many", "changes_frame", "explain", "explain_many"),
    "engine.retry": ("Retry",),
    "features": ("Groups", "Regions", "Table", "Vector", "Windows", "Words"),
    "minimization": ("minimize",),
    "optimizer": ("Optimizer",),
    "parallel": ("Workers",),
    "result": ("Result", "Status"),
    "scipy_adapter": ("scipy_method",),
}
"""The module of each name. It is imported with the first use of the name, so that `zomirror --help` need not wait."""
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}


def __getattr__(name: str) -> Any:
    """Import a public name or module when it is first used (PEP 562)."""
    if name in _HOME_OF:
        found = getattr(import_module(f"zomirror.{_HOME_OF[name]}"), name)
    elif name in __all__:
        found = import_module(f"zomirror.{name}")
    else:
        raise AttributeError(f"module 'zomirror' has no attribute {name!r}")
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    """The public names."""
    return sorted(__all__)
