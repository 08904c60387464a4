"""Published zeroth-order methods, for comparison: each one a short file with its equation, built from our pieces."""

from zomirror.methods.gallery.adamm import AdaMM, zo_adamm
from zomirror.methods.gallery.frank_wolfe import FrankWolfe, zo_fw, zo_scg
from zomirror.methods.gallery.relatives import Optimistic, Storm
from zomirror.methods.gallery.sign import Signs, zo_signsgd
from zomirror.methods.gallery.sparse_regression import CompressedSensing, LassoEstimate, zo_lasso, zoro
from zomirror.methods.gallery.subset import Subset, zo_sparse
from zomirror.methods.gallery.truncation import Truncated, zo_ht, zo_truncated

__all__ = [
    "AdaMM",
    "CompressedSensing",
    "FrankWolfe",
    "LassoEstimate",
    "Optimistic",
    "Signs",
    "Storm",
    "Subset",
    "Truncated",
    "zo_adamm",
    "zo_fw",
    "zo_ht",
    "zo_lasso",
    "zo_scg",
    "zo_signsgd",
    "zo_sparse",
    "zo_truncated",
    "zoro",
]
