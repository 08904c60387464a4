"""A descent that is surveyed as it goes, the larger part of the recommended method.

Every few hundred queries the descent pauses for one batch, which asks x itself and x with its small entries set to
zero, for a few thresholds tau:

    prune      x <- x with every |x_i| < tau max |x| set to 0, if f rises by at most a quarter of the penalty saved
    go back    x <- the best point measured, eta <- 2 eta, if F has risen and no better point was met for a while;
               between surveys too, if F is above its start by more than the first slope explains

Differences over random groups also move coordinates that do not matter, and where f has a kink they go on doing so
for ever. The first puts these back to an exact zero; the second makes the steps as small as the kink wants them.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar, cast

import numpy as np
from numpy.typing import NDArray

from zomirror.checks import positive_integer
from zomirror.errors import ArgumentError
from zomirror.methods.averaging import Stretch
from zomirror.methods.descent import Kept, Measured, MirrorDescent, Moved, State
from zomirror.methods.group_memory import GroupMemory, Remembered
from zomirror.methods.quasi_newton import SMALL, Refinement, aimed, begun
from zomirror.methods.query import Query, Segment, scattered
from zomirror.numerics.arrays import Array, Values
from zomirror.numerics.frozen import changed
from zomirror.numerics.random import Key
from zomirror.problem import Problem

SHARE, NOISY_SHARE = 0.25, 0.75
"""What f may rise by when x is pruned, as a part of the penalty saved. Noise leaves behind many small entries that f
has little use for."""
GROWING, OUTSTANDING = 4.0, 3.0
"""Not pruned is what f pulls away from 0 so many times as hard as l1 holds it there, and so many times as hard as it
pulls at the root mean square of all: an entry that has only begun to grow."""
SLACK = 0.01
"""F has risen when it is above the best by this part of the penalty."""
WAIT = 0.25
"""How long to wait for a better point before going back, in queries for each free coordinate."""
ASTRAY = 2.0
"""How far F may rise above its start: as far as the first slope goes over so many times the scale of x."""
SLOW = 0.2
"""A refinement begins when the descent gains less than this part of the penalty from one survey to the next."""
ROUNDS, WORTH = 3, 1e-5
"""It goes on for so many rounds, and then while each query gains this part of the penalty."""
POLISHED = 1e-11
"""As WORTH, where the descent is known to be at rest: its own queries would gain less."""
DOUBT = 4.0
"""A difference of F below so many standard deviations of the noise says nothing."""
ASKED = 4
"""How often a survey asks each of its points where f is noisy."""


DESCEND, SURVEY, SLOPES, LINE = range(4)
"""What a batch may be for."""


@dataclass(frozen=True, eq=False)
class Course:
    """What is known between batches: the descent's own memory, and the best point so far."""

    descent: Remembered
    best: Array
    refinement: Refinement
    stretch: Stretch
    """The last batches of a noisy descent."""
    f: float = math.inf
    """f at the best point."""
    least: float = math.inf
    """F at the best point."""
    asked: int = 0
    """Queries since the last survey."""
    waited: int = 0
    """Queries since the best point became clearly better."""
    stage: int = DESCEND
    """What the next batch is for."""
    since: float = math.inf
    """F at the best point when the last survey was made."""
    rest: int = 0
    """Surveys to come before the next refinement."""
    failed: int = 0
    """Refinements in a row that were not worth it."""
    worth: float = WORTH
    """What a query of the refinement must gain for it to go on, as a part of the penalty."""
    ceiling: float = math.inf
    """F above this is a step that went astray; infinite before the first step has shown what is much."""


@dataclass(frozen=True, slots=True, eq=False)
class Pruned:
    """Rows of x with the `small` entries below a threshold set to `zero`, the point of the box nearest to 0."""

    limits: NDArray[np.float64]
    zero: Array
    small: NDArray[np.bool_]
    """Where pruning is allowed at all."""

    def add(self, base: Array, radius: float, start: int, out: Array) -> None:
        """Row j is base, pruned with the limit start + j; there is no radius to speak of."""
        size = np.abs(base)
        for row, limit in zip(out, self.limits[start:], strict=False):
            row[:] = np.where(self.small & (size < limit), self.zero, base)


@dataclass(frozen=True, slots=True)
class Surveyed:
    """A descent with a gradient memory that prunes what does not matter and goes back where F has risen; see above.

    A survey is made `every` so many queries; its rows are x and then x pruned at each of `cuts` times max |x|. Where
    the descent has become slow and f has no noise, quasi-Newton steps follow it, on at most `refined` coordinates
    (0: none; their two queries are in refine.py). With a stochastic f(x; xi) there is no survey, as no two draws can
    be compared.
    """

    revision: ClassVar[int] = 3
    """As of a GroupMemory."""

    descent: MirrorDescent
    every: int = 300
    cuts: tuple[float, ...] = (1e-3, 1e-2, 3e-2, 1e-1)
    refined: int = 100

    def __post_init__(self) -> None:
        object.__setattr__(self, "every", positive_integer("every", self.every))
        if self.refined:
            object.__setattr__(self, "refined", positive_integer("refined", self.refined))
        estimator = self.descent.estimator
        if not isinstance(estimator, GroupMemory) or estimator.link is not None:
            raise ArgumentError(f"expected a descent whose estimator is a GroupMemory without a link, got {estimator}")
        if not all(0 < cut < 1 for cut in self.cuts):
            raise ArgumentError(f"expected cuts between 0 and 1, got {self.cuts}: they are parts of the largest entry")

    @property
    def estimator(self) -> GroupMemory:
        """The descent's, whose kind was checked."""
        return cast(GroupMemory, self.descent.estimator)

    @property
    def scale(self) -> float:
        """The size that entries of x reach."""
        return self.estimator.scale

    def init(self, x0: Array, problem: Problem, key: Key) -> State:
        """The descent's first state."""
        state = self.descent.init(x0, problem, key)
        blank = Refinement.blank(max(1, min(self.refined, state.memory.w.size)))
        return changed(state, memory=Course(state.memory, x0, blank, Stretch.blank(x0)))

    def ask(self, state: State) -> Query:
        """The descent's query, or now and then that of a survey or of a refinement."""
        return self.asked(state, state.memory)

    def asked(self, state: State, course: Course) -> Query:
        """The same of a course that another memory holds."""
        x, problem = state.x, state.problem
        if course.stage == DESCEND:
            return self.descent.estimator.ask(course.descent, problem, x, state.t, state.key)
        if course.stage == SLOPES:
            return course.refinement.slopes(x, course.descent.radius, problem)
        if course.stage == LINE:
            return course.refinement.line(x, problem)
        return Query((Segment(x, 1), *self._prunings(state, course)) * _times(course))

    def tell(self, state: State, query: Query, values: Values) -> State:
        """One step of whatever was asked for."""
        return State(state.problem, state.key, state.t + 1, *self.told(state, state.memory, query, values))

    def told(self, state: State, course: Course, query: Query, values: Values) -> Moved:
        """The same of a course that another memory holds."""
        tell = (self._descended, self._surveyed, self._sloped, self._lined)[course.stage]
        return tell(state, course, query, values)

    def _descended(self, state: State, course: Course, query: Query, values: Values) -> Moved:
        problem, rows = state.problem, len(values)
        moved = self.descent.moved(problem, state.x, course.descent, state.pace, query, values)
        x, memory, pace, last = moved
        total = last.f + problem.penalty(last.x)
        noted = _noted(course, last.x, last.f, total, rows)
        if total > course.ceiling:
            return Moved(course.best, changed(course, **noted), 2 * state.pace, last)
        if course.descent.central:
            noted["stretch"] = course.stretch.met(x, total)
        if course.ceiling == math.inf and pace > 0:
            noted["ceiling"] = total + ASTRAY * self.scale * pace
        asked = course.asked + rows
        due = asked >= self.every and pace > 0 and not problem.stochastic
        stage = SURVEY if due else DESCEND
        return Moved(x, changed(course, descent=memory, asked=asked, stage=stage, **noted), pace, last)

    def kept(self, state: State) -> Kept | None:
        """The best point, and how far above it another may seem by noise alone; no draw of a stochastic f is best."""
        return self.kept_by(state.memory, state.problem)

    def kept_by(self, course: Course, problem: Problem) -> Kept | None:
        """The same of a course that another memory holds."""
        if problem.stochastic or course.least == math.inf:
            return None
        return Kept(course.best, course.f, course.least, DOUBT * course.descent.sd)

    def polished(self, course: Course, problem: Problem) -> Course:
        """About to be refined at its best point for as long as that gains anything."""
        course = changed(course, descent=changed(course.descent, f=course.f))
        return _refined(course, course.best, problem, POLISHED) if self.refined else course

    def _prunings(self, state: State, course: Course) -> list[Segment]:
        x, problem = state.x, state.problem
        if not problem.penalty.l1:
            return []
        limits = np.array(self.cuts) * float(np.abs(x).max())
        w = course.descent.w
        growing = max(GROWING * problem.penalty.l1, OUTSTANDING * float(np.sqrt(np.mean(np.square(w)))))
        small = -scattered(w, problem.free, problem.d) * np.sign(x) <= growing
        return [Segment(x, limits.size, Pruned(limits, problem.box.project(np.zeros_like(x)), small))]

    def _surveyed(self, state: State, course: Course, query: Query, values: Values) -> Moved:
        problem, pace = state.problem, state.pace
        sd, times = course.descent.sd, _times(course)
        share = NOISY_SHARE if course.descent.central else SHARE
        # Divided first: refused points are read as the largest number there is.
        means = (values / times).reshape(times, -1).sum(axis=0)
        x, f, h = _pruned(query, means, problem, share, sd / math.sqrt(times))
        last = Measured(x, f, math.nan, math.nan)
        course = changed(course, **_noted(course, x, f, f + h, len(values)))
        free = problem.d if problem.free is None else problem.free.size
        if f + h > course.least + SLACK * h + DOUBT * sd and course.waited >= max(self.every, WAIT * free):
            x, f, pace, course = course.best, course.f, 2 * pace, changed(course, waited=0)
            course = changed(course, stretch=course.stretch.next(longer=False))
        if course.stretch.over:
            settled = course.stretch.settled(DOUBT * sd)
            x, pace = (problem.box.project(course.stretch.mean), 2 * pace) if settled else (x, pace)
            x.flags.writeable = False
            course = changed(course, stretch=course.stretch.next(longer=settled))
        slow = course.since - course.least <= SLOW * h
        course = changed(course, descent=changed(course.descent, f=f), asked=0, since=course.least, stage=DESCEND)
        if self.refined and slow and not course.rest and not course.descent.central:
            course = _refined(course, x, problem, WORTH)
        course = changed(course, rest=max(0, course.rest - 1))
        return Moved(x, course, pace, last)

    def _sloped(self, state: State, course: Course, query: Query, values: Values) -> Moved:
        x, problem = state.x, state.problem
        refinement, slopes = aimed(course.refinement, x, values, problem, query, self.scale)
        f = float(values[0])
        course = changed(course, **_noted(course, x, f, refinement.total, len(values)))
        w, on = course.descent.w.copy(), refinement.chosen[: refinement.count]
        w[on if problem.free is None else np.searchsorted(problem.free, on)] = slopes
        course = changed(course, descent=changed(course.descent, w=w, f=f), refinement=refinement, stage=LINE)
        return Moved(x, course, state.pace, Measured(x, f, math.nan, math.nan))

    def _lined(self, state: State, course: Course, query: Query, values: Values) -> Moved:
        x, problem, r = state.x, state.problem, course.refinement
        totals = [f + problem.penalty(row) for f, row in zip(values.tolist(), _rows(query, len(values)), strict=True)]
        j = int(np.argmin(totals))
        gain, rows = r.total - totals[j], r.count + 1 + len(values)
        last = Measured(x, course.descent.f, math.nan, math.nan)
        if gain > 0:
            x, f = query.points(j, j + 1)[0], float(values[j])
            x.flags.writeable = False
            noted = _noted(course, x, f, totals[j], len(values))
            course = changed(course, descent=changed(course.descent, f=f), **noted)
            enough = max(course.worth * rows * problem.penalty(x), DOUBT * course.descent.sd)
            worth = r.rounds < ROUNDS or gain >= enough
        elif course.worth == POLISHED and (shorter := r.shorter(self.scale)) is not None:
            return Moved(x, changed(course, refinement=shorter), state.pace, last)
        else:
            worth = r.pairs > 0
            r = changed(r, pairs=0, rounds=0)
        if worth:
            course = changed(course, refinement=r, stage=SLOPES)
        else:
            failed = 0 if r.rounds > ROUNDS else min(course.failed + 1, 4)
            course = changed(course, asked=0, since=course.least, rest=2**failed - 1, failed=failed, stage=DESCEND)
        last = Measured(x, course.descent.f, math.nan, math.nan)
        return Moved(x, course, state.pace, last)


def _refined(course: Course, x: Array, problem: Problem, worth: float) -> Course:
    """About to be refined at x, if any coordinate matters there."""
    small = SMALL if worth == WORTH else 0.0  # at rest, small entries are what is left to mend
    chosen = begun(Refinement.blank(course.refinement.chosen.size), x, course.descent.w, problem, small)
    return changed(course, refinement=chosen, worth=worth, stage=SLOPES if chosen.count else DESCEND)


def _times(course: Course) -> int:
    """How often a survey asks each of its points."""
    return ASKED if course.descent.central else 1


def _pruned(query: Query, values: Values, problem: Problem, share: float, sd: float) -> tuple[Array, float, float]:
    """(x, f, h) of the best row whose pruning is worth it beyond doubt; row 0 is x as it was."""
    x = query.segments[0].base
    f0, h0 = float(values[0]), problem.penalty(x)
    best, enough = (x, f0, h0), f0 + h0 - DOUBT * sd
    for f, row in zip(values.tolist(), _rows(query, len(values)), strict=True):
        h = problem.penalty(row)
        if f - f0 <= share * (h0 - h) and f + h < enough:
            x = row.copy()  # not a part of the block, which it would keep alive
            x.flags.writeable = False
            best, enough = (x, f, h), f + h
    return best


def _rows(query: Query, count: int) -> Iterator[Array]:
    """Its first points one after the other, made a block at a time."""
    for start, stop in query.blocks():
        if start < count:
            yield from query.points(start, min(stop, count))


def _noted(course: Course, x: Array, f: float, total: float, rows: int) -> dict[str, Any]:
    """What one more measured point changes."""
    clearly = total < course.least - DOUBT / 2 * course.descent.sd
    waited = 0 if clearly else course.waited + rows
    return {"best": x, "f": f, "least": total, "waited": waited} if total < course.least else {"waited": waited}
