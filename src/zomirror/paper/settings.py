"""The algorithms that are compared, and two sets of settings: as printed in the paper, and as in its authors' code.

                        printed                        authors
    loss                max(margin, 0)                 log(1 + exp(margin))
    l1 = l2             0.1 MNIST, 0.5 CIFAR-10        2^-4 MNIST, 2^-1 CIFAR-10
    PN of MNIST         0 <= x <= 1 - x0, centre       -x0 <= x <= 1 - x0, centre
    PN of CIFAR-10      pixels in [0, 1], centre       (x + x0) std in [-1, 1], start at 0
    lambda_t            2 / (max + 1)                  1 / (max + 1)
    nu of the entropy   sqrt(2e(2 ln d - 1)/m) / d     sqrt(4e ln(d - 1)/m) / d
    PSGD                eta |x - x_t|^2                (eta/2) |x - x_t|^2

Both: m = T = 200; PP in the box between 0 and x0, from x0; nu = 1/sqrt(m d) for PSGD; eta = 10^0 .. 10^5.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from zomirror.contrast.loss import Hinge, MarginLoss, Softplus
from zomirror.errors import ArgumentError
from zomirror.methods.descent import MirrorDescent
from zomirror.methods.estimator import EntropyRadius, Radius
from zomirror.methods.presets import zo_ada_expmd, zo_expmd, zo_psgd

KINDS = ("PN", "PP")
DATA_TITLES = {"mnist": "MNIST", "cifar": "CIFAR-10"}
ITERATIONS = 200
BATCH = 200
QUERIES = BATCH + 1
"""Queries of an iteration of the paper's methods."""


@dataclass(frozen=True, slots=True)
class Algorithm:
    """One curve: a method of the paper with the eta of the paper, or the recommended method."""

    family: str
    eta: float | None = None

    @property
    def name(self) -> str:
        """The name in files: `expmd-10`, `adaexpmd`."""
        return self.family if self.eta is None else f"{self.family}-{self.eta:g}"

    @property
    def title(self) -> str:
        """The name in figures: `ZO-ExpMD, η = 10`."""
        return TITLES[self.family] + ("" if self.eta is None else f", η = {self.eta:g}")

    @classmethod
    def named(cls, name: str) -> Algorithm:
        """The algorithm with that `name`."""
        family, _, eta = name.partition("-")
        if family not in TITLES or (family in TUNED) != bool(eta):
            raise ArgumentError(f"expected an algorithm such as adaexpmd or expmd-10, got {name!r}")
        return cls(family, float(eta) if eta else None)


TITLES = {"adaexpmd": "ZO-AdaExpMD", "expmd": "ZO-ExpMD", "psgd": "ZO-PSGD", "recommended": "recommended"}
TUNED = ("expmd", "psgd")
"""Families with a step size to tune."""
ETAS = tuple(10.0**i for i in range(6))
ADAPTIVE, RECOMMENDED = Algorithm("adaexpmd"), Algorithm("recommended")
PAPER = (ADAPTIVE, *(Algorithm(family, eta) for family in TUNED for eta in ETAS))
"""The thirteen algorithms of the paper."""
ALGORITHMS = (*PAPER, RECOMMENDED)


@dataclass(frozen=True, slots=True)
class LooseRadius:
    """nu = sqrt(4 e ln(d - 1) / m) / d, as in the authors' code."""

    def __call__(self, d: int, batch_size: int) -> float:
        """Nu for the entropy map with Rademacher directions."""
        return math.sqrt(4 * math.e * math.log(d - 1) / batch_size) / d


@dataclass(frozen=True, slots=True)
class Settings:
    """Everything that the image and the algorithm of an experiment leave open."""

    name: str
    loss: MarginLoss
    mnist_weight: float
    cifar_weight: float
    additive: bool
    """Whether a PN of MNIST may only add ink."""
    shifted: bool
    """Whether a PN of CIFAR-10 keeps pixels in [0, 1] and starts at the centre; else its box leaves the mean
    out of (x + x0) std, and the start is 0."""
    c: float
    """The constant of the adaptive step."""
    psgd: float
    """The eta that `zo_psgd` is given for an eta of 1 in the paper."""
    radius: Radius

    def weight(self, data: str) -> float:
        """l1 = l2."""
        return self.mnist_weight if data == "mnist" else self.cifar_weight

    def method(self, algorithm: Algorithm) -> MirrorDescent | None:
        """The method; None for the recommended one, which `minimize` builds from the problem."""
        if algorithm.family == "adaexpmd":
            return zo_ada_expmd(BATCH, c=self.c, radius=self.radius)
        if algorithm.eta is None:
            return None
        if algorithm.family == "expmd":
            return zo_expmd(algorithm.eta, BATCH, radius=self.radius)
        return zo_psgd(self.psgd * algorithm.eta, BATCH)


PRINTED = Settings(
    name="printed",
    loss=Hinge(),
    mnist_weight=0.1,
    cifar_weight=0.5,
    additive=True,
    shifted=True,
    c=2.0,
    psgd=2.0,
    radius=EntropyRadius(),
)
AUTHORS = Settings(
    name="authors",
    loss=Softplus(),
    mnist_weight=2.0**-4,
    cifar_weight=2.0**-1,
    additive=False,
    shifted=False,
    c=1.0,
    psgd=1.0,
    radius=LooseRadius(),
)
SETTINGS = {settings.name: settings for settings in (PRINTED, AUTHORS)}
