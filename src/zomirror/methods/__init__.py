"""Methods and their parts: everything that `method=` of minimize() can be, and what to build another one from."""

from zomirror.methods.descent import Measured, Method, MirrorDescent, State
from zomirror.methods.directions import coordinate, gaussian, rademacher, sphere
from zomirror.methods.estimator import EntropyRadius, Estimate, EuclideanRadius, TwoPoint
from zomirror.methods.group_memory import GroupMemory
from zomirror.methods.mirror import Entropy, Euclidean, PNorm
from zomirror.methods.presets import (
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
from zomirror.methods.query import Query
from zomirror.methods.relatives import Optimistic, Storm
from zomirror.methods.restart import Restarted
from zomirror.methods.step import Adaptive, Constant, ScaleFree
from zomirror.methods.survey import Surveyed
from zomirror.problem import Box, ElasticNet, Problem

__all__ = [
    "Adaptive",
    "Box",
    "Constant",
    "ElasticNet",
    "Entropy",
    "EntropyRadius",
    "Estimate",
    "Euclidean",
    "EuclideanRadius",
    "GroupMemory",
    "Measured",
    "Method",
    "MirrorDescent",
    "Optimistic",
    "PNorm",
    "Problem",
    "Query",
    "Restarted",
    "ScaleFree",
    "Schedule",
    "State",
    "Storm",
    "Surveyed",
    "TwoPoint",
    "coordinate",
    "gaussian",
    "rademacher",
    "recommended",
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
