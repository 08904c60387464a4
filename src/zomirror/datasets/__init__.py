"""Data sets as arrays: downloaded once, verified and cached; twenty digits come with the package."""

from zomirror.datasets.cifar10 import cifar10
from zomirror.datasets.digits import digits
from zomirror.datasets.fetch import Dataset
from zomirror.datasets.mnist import mnist
from zomirror.datasets.survival import Survival, breast_cancer

__all__ = ["Dataset", "Survival", "breast_cancer", "cifar10", "digits", "mnist"]
