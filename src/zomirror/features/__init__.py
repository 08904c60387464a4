"""Feature spaces: what a search may change, and which input the model then gets. One file per kind."""

from zomirror.features.groups import Groups
from zomirror.features.place import Change, Features, Place
from zomirror.features.regions import Regions
from zomirror.features.tabular.table import Table
from zomirror.features.vector import Vector
from zomirror.features.windows import Windows
from zomirror.features.words import Words

__all__ = ["Change", "Features", "Groups", "Place", "Regions", "Table", "Vector", "Windows", "Words"]
