"""Explain any model that can only be asked, and minimise any function that can only be asked.

    import zomirror as zm
    explanation = zm.explain(model, image, kind="PN", rng=0)

    result = zm.minimize(fun, x0, l1=0.1, bounds=(0, 1), budget=10_000, rng=0)

`explain` asks a classifier what it looked at; `minimize` asks a function for values and finds a sparse minimiser of
f(x) + l1 |x|_1 + (l2/2) |x|_2^2 over a box; with `Optimizer` the caller asks the function.
"""

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
from zomirror.version import __version__

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
