"""A guess of the gradient from elsewhere (a surrogate model, an earlier run), trusted as far as it proves right.

The differences y of a batch are compared with those that the guess v(x) predicts, q_j = <u_{G_j}, v>. Over all batches
so far

    phi = <y, q> / <q, q>, between 0 and 2, if the correlation of y and q is not chance; 0 otherwise
    w  <- w + phi v(x)              when phi is above 0 for the first time: the guess seeds the memory
    w  <- w + psi (v(x) - v(x'))    from then on, x' being the iterate before; psi is the same coefficient for what the
                                    change of v predicts of y - <u, w>, which w has not foreseen

So a vector only seeds the memory, and a function also says how the gradient changes on the way. A guess that is no
better than chance is never used.
"""

from __future__ import annotations

import math
import zlib
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from zomirror.checks import reading, shown, vector
from zomirror.errors import ArgumentError
from zomirror.methods.coordinate_groups import Groups
from zomirror.numerics.arrays import Array, Values, dot
from zomirror.numerics.frozen import changed

SURE, MOST = 3.0, 2.0
"""Standard deviations above which a correlation is not chance; the largest phi."""


@dataclass(frozen=True, slots=True, eq=False)
class GradientGuess:
    """v(x), checked: a vector, or a function of x."""

    guess: Callable[[Array], Any] | Array = field(repr=False)

    @classmethod
    def of(cls, guess: object, x0: Array) -> GradientGuess:
        """The caller's guess; ArgumentError if it does not give d finite numbers at x0."""
        if callable(guess):
            prior = cls(guess)
            prior.at(x0)
            return prior
        found = vector("prior", guess).astype(x0.dtype)
        if found.size != x0.size:
            raise ArgumentError(f"expected prior to be a vector like x0, of length {x0.size}, got {found.size}")
        return cls(found)

    def at(self, x: Array) -> Array:
        """v(x)."""
        if isinstance(self.guess, np.ndarray):
            return self.guess
        with reading("prior", self.guess):
            found: NDArray[Any] = np.asarray(self.guess(x), x.dtype)
        if found.shape != x.shape or not np.isfinite(found).all():
            raise ArgumentError(
                f"expected prior(x) to return {x.size} finite numbers, got {shown(found)}: return the guessed gradient"
            )
        return found

    @property
    def name(self) -> object:
        """What a stored run compares: the checksum of a vector, or the function itself."""
        return zlib.crc32(self.guess.tobytes()) if isinstance(self.guess, np.ndarray) else self.guess


@dataclass(frozen=True, slots=True)
class Evidence:
    """What the batches so far say of a guess q of their differences y: sums over all of them."""

    rows: int = 0
    yq: float = 0.0
    qq: float = 0.0
    yy: float = 0.0

    def with_batch(self, y: Values, q: Values) -> Evidence:
        """With one more batch."""
        return Evidence(self.rows + y.size, self.yq + dot(y, q), self.qq + dot(q, q), self.yy + dot(y, y))

    @property
    def trust(self) -> float:
        """phi, or psi."""
        chance = SURE * math.sqrt(self.yy * self.qq / max(self.rows, 1))
        return min(self.yq / self.qq, MOST) if self.qq > 0 and self.yq > chance else 0.0


@dataclass(frozen=True, eq=False)
class Guided:
    """What is remembered of a guess."""

    last: Array
    """v at the last iterate."""
    value: Evidence = Evidence()
    """Of v itself."""
    change: Evidence = Evidence()
    """Of its changes from one iterate to the next, since it was used."""
    used: bool = False

    def moved(self, w: Array, v: Array, y: Values, groups: Groups) -> tuple[Guided, Array, bool]:
        """With the batch y at an iterate where the guess is v; the memory w with the guess in it; whether it is new."""
        p, _ = groups.sums(w)
        q, _ = groups.sums(v)
        value, change, new = self.value.with_batch(y, q), self.change, False
        if self.used:
            step = v - self.last
            if step.any():
                s, _ = groups.sums(step)
                change = change.with_batch(y - p, s)
                w = w + w.dtype.type(change.trust) * step
        elif value.trust and q.any():
            # Only what w does not know yet: it may have learned some of it.
            share = min(max(dot(y - p, q) / dot(q, q), 0.0), value.trust)
            w, new = w + w.dtype.type(share) * v, True
        return changed(self, last=v, value=value, change=change, used=self.used or new), w, new
