"""What can be asked of an explanation, described once: for the command line, the model server and the studio."""

from zomirror.schema.explainer import Explainer
from zomirror.schema.feature_space import SPACES, features_of
from zomirror.schema.parameter import PARAMETERS, Parameter, parameter, parsed
from zomirror.schema.response import response

__all__ = ["PARAMETERS", "SPACES", "Explainer", "Parameter", "features_of", "parameter", "parsed", "response"]
