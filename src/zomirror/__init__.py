"""Sparse optimisation of black boxes in high dimension: min over a box of f(x) + l1|x|_1 + (l2/2)|x|_2^2.

    import zomirror as zm
    result = zm.minimize(fun, x0, l1=0.1, bounds=(0, 1), budget=10_000, rng=0)

    explanation = zm.explain(model, image, kind="PN", rng=0)

`minimize` asks the function itself; `Optimizer` lets you ask it; `explain` asks a classifier what it looked at.
"""

from zomirror import runs
from zomirror.attack import Attack, attack, attack_many
from zomirror.box import Box
from zomirror.classifiers import as_classifier, command_classifier, command_function, http_classifier, onnx_classifier
from zomirror.contrast import Explanation, explain, explain_many
from zomirror.descent import Measured, Method, MirrorDescent, State
from zomirror.directions import coordinate, gaussian, rademacher, sphere
from zomirror.errors import (
    ArgumentError,
    ArgumentTypeError,
    BudgetError,
    BusyError,
    DataError,
    OracleError,
    RunError,
    WorkerError,
    ZomirrorError,
)
from zomirror.estimator import EntropyRadius, Estimate, EuclideanRadius, TwoPoint
from zomirror.grouped import GroupMemory
from zomirror.minimize import minimize
from zomirror.mirror import Entropy, Euclidean, PNorm
from zomirror.optimizer import Optimizer
from zomirror.oracle import Oracle, Retry
from zomirror.parallel import Workers
from zomirror.penalty import ElasticNet
from zomirror.presets import (
    Schedule,
    recommended,
    theorem_schedule,
    zo_ada_expmd,
    zo_ada_psgd,
    zo_ao_expmd,
    zo_exp_storm,
    zo_expmd,
    zo_group_expmd,
    zo_psgd,
)
from zomirror.problem import Problem
from zomirror.query import Query
from zomirror.relatives import Optimistic, Storm
from zomirror.restart import Restarted
from zomirror.result import History, Intermediate, Result, Status
from zomirror.scipy_method import scipy_method
from zomirror.step import Adaptive, Constant, ScaleFree
from zomirror.survey import Surveyed
from zomirror.version import __version__

__all__ = [
    "Adaptive",
    "ArgumentError",
    "ArgumentTypeError",
    "Attack",
    "Box",
    "BudgetError",
    "BusyError",
    "Constant",
    "DataError",
    "ElasticNet",
    "Entropy",
    "EntropyRadius",
    "Estimate",
    "Euclidean",
    "EuclideanRadius",
    "Explanation",
    "GroupMemory",
    "History",
    "Intermediate",
    "Measured",
    "Method",
    "MirrorDescent",
    "Optimistic",
    "Optimizer",
    "Oracle",
    "OracleError",
    "PNorm",
    "Problem",
    "Query",
    "Restarted",
    "Result",
    "Retry",
    "RunError",
    "ScaleFree",
    "Schedule",
    "State",
    "Status",
    "Storm",
    "Surveyed",
    "TwoPoint",
    "WorkerError",
    "Workers",
    "ZomirrorError",
    "__version__",
    "as_classifier",
    "attack",
    "attack_many",
    "command_classifier",
    "command_function",
    "coordinate",
    "explain",
    "explain_many",
    "gaussian",
    "http_classifier",
    "minimize",
    "onnx_classifier",
    "rademacher",
    "recommended",
    "runs",
    "scipy_method",
    "sphere",
    "theorem_schedule",
    "zo_ada_expmd",
    "zo_ada_psgd",
    "zo_ao_expmd",
    "zo_exp_storm",
    "zo_expmd",
    "zo_group_expmd",
    "zo_psgd",
]
