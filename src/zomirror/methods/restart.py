"""The recommended method: a surveyed descent that restarts when it has stalled.

A descent ends in some local minimum, and its first batches decide which one. On neural networks local minima differ by
large factors, so a descent that has stalled is set aside and a new one is tried:

    stalled   F has not fallen by 10 % of the penalty for half as many queries as the descent had used by then; by 2 %,
              where x0 is the point of the box nearest to 0
    start     in turn: a quarter of the way from that point to x0; x0, where other random groups lead elsewhere; the
              best point with a random half of its entries set to zero. Always the last one if every coordinate is a
              group of its own in the opening
    continue  with the better of the two, once the new one has stalled, falls too slowly to catch up, or has used as
              many queries as the old one

A new descent that lost is dropped. The old one is polished, and uses a quarter as many queries as the new one did
before the next one begins. So a descent whose F falls is left alone, and once it has converged the rest of the budget
is spent on the search for a better minimum. From a dense x0 most entries have to become zero, and chance decides which
ones stay: there a sparser start often leads to another minimum, and the limit of 10 % makes restarts begin early.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from zomirror.methods.descent import BestPoint, State
from zomirror.methods.query import Query
from zomirror.methods.survey import WAIT, Surveyed
from zomirror.numerics.arrays import Array, Values
from zomirror.numerics.frozen import changed
from zomirror.numerics.random import Draws, Key
from zomirror.problem import Problem

FALL, FULL_FALL = 0.02, 0.1
"""The decrease of F that counts as clear, relative to the penalty: 2 % if x0 is the point of the box nearest to 0, else
10 %."""
PAUSE, LEAST = 0.5, 1_000
"""Stalled: no clear decrease of F for 50 % of the queries the descent had used by then, and for at least 1,000."""
BACK = 2 * WAIT
"""And for at least 0.5 queries per free coordinate: twice the wait before Surveyed returns to its best point."""
LATER, PACE = 1.5, 1.5
"""A new descent is checked at ages that grow by a factor of 1.5. It is dropped if its F would still be above the old
one's after another decrease of 1.5 times that since the last check."""
SHORT = 0.5
"""While another descent is set aside, a clear decrease delays the stall by half as many queries."""
NEARER = 0.25
"""The sparser start is at 25 % of the way from the point of the box nearest to 0 to x0."""
HALVES = 1 << 62
"""Added to t, so that the entries set to zero are drawn independently of the groups of iteration t."""
REVISION = 2
"""Raised whenever the same values lead to other points."""


@dataclass(frozen=True, eq=False)
class Attempt:
    """One surveyed descent: its state and its progress. Ages are the numbers of queries it had used."""

    state: State
    """The inner state."""
    age: int = 0
    mark: float = math.inf
    """F at its last clear decrease."""
    due: int = 0
    """The age at which it has stalled, unless F clearly decreases before."""
    watched: int = 0
    """The age at the last check of its pace; 0 before the first."""
    then: float = math.inf
    """F at its best point at that age."""

    def judged(self, best: BestPoint, patience: float, fall: float) -> Attempt:
        """Due later if F at its best point has clearly fallen."""
        problem = self.state.problem
        h = problem.penalty
        if best.fun < self.mark - fall * (h(best.x) - h(_nearest(best.x, problem))):
            pause = max(_youth(problem), PAUSE * self.age)
            return changed(self, mark=best.fun, due=self.age + int(patience * pause))
        return self

    @property
    def watchable(self) -> bool:
        """Whether its pace is to be checked."""
        return self.age >= (LATER * self.watched or _youth(self.state.problem))


@dataclass(frozen=True, eq=False)
class Attempts:
    """What Restarted keeps: the current descent, and the one that was set aside for it."""

    start: Array
    """x0."""
    current: Attempt
    aside: Attempt
    """Without a meaning when `alone`."""
    begun: int = 0
    """How many descents were begun after the first."""
    alone: bool = True
    """Whether no descent is set aside."""

    def starts(self, problem: Problem) -> tuple[Array, ...]:
        """The starts to take in turn: one nearer to 0, unless x0 is the nearest point, and x0."""
        nearest = _nearest(self.start, problem)
        near: Array = problem.box.project(nearest + self.start.dtype.type(NEARER) * (self.start - nearest))
        near.flags.writeable = False
        return (self.start,) if np.array_equal(near, self.start) else (near, self.start)

    def fall(self, problem: Problem) -> float:
        """The clear decrease of F, relative to the penalty."""
        return FALL if np.array_equal(self.start, _nearest(self.start, problem)) else FULL_FALL


@dataclass(frozen=True, slots=True)
class Restarted:
    """A surveyed descent that restarts when it has stalled, and keeps the best point of all descents; see above.

    Where f is noisy or stochastic there is one descent only: neither a stall nor the better of two descents can be
    told from noise. A new descent that meets a value that is not finite is dropped.
    """

    surveyed: Surveyed

    @property
    def revision(self) -> int:
        """Its own and that of the descent."""
        return REVISION + self.surveyed.revision

    def init(self, x0: Array, problem: Problem, key: Key) -> State:
        """The first descent."""
        inner = self.surveyed.init(x0, problem, key)
        return changed(inner, memory=Attempts(x0, Attempt(inner), Attempt(inner)))

    def ask(self, state: State) -> Query:
        """The query of the current descent."""
        return self.surveyed.ask(state.memory.current.state)

    def tell(self, state: State, query: Query, values: Values) -> State:
        """One step of that descent, and perhaps a change to another one."""
        attempts: Attempts = state.memory
        now = attempts.current
        inner = self.surveyed.tell(now.state, query, values)
        last = inner.last
        attempts = changed(attempts, current=changed(now, state=inner, age=now.age + len(values)))
        if self.surveyed.comparable(inner):
            attempts = self._turned(self._judged(attempts))
        current = attempts.current.state
        if last is not None and self._best(attempts) is not current:
            # The stationarity of a descent that may be dropped says nothing about the point that is kept.
            last = changed(last, stationarity=math.nan)
        return changed(state, t=state.t + 1, x=current.x, memory=attempts, last=last)

    def withdrawn(self, state: State) -> State | None:
        """Without the current descent, which met a value that is not finite; None if there is no other one."""
        attempts: Attempts = state.memory
        if attempts.alone:
            return None
        attempts = self._lost(attempts, state.t + 1)
        return changed(state, t=state.t + 1, x=attempts.current.state.x, memory=attempts)

    def kept(self, state: State) -> BestPoint | None:
        """The best point of all descents."""
        attempts: Attempts = state.memory
        now = self.surveyed.kept(attempts.current.state)
        if attempts.alone:
            return now
        aside = self.surveyed.kept(attempts.aside.state)
        return aside if now is None or (aside is not None and aside.fun <= now.fun) else now

    def _best(self, attempts: Attempts) -> State:
        """The state of the descent that has found the best point."""
        now, least = attempts.current.state, self.surveyed.least
        if attempts.alone or least(attempts.aside.state) >= least(now):
            return now
        return attempts.aside.state

    def _judged(self, attempts: Attempts) -> Attempts:
        """With a later stall of the current descent if F has clearly fallen."""
        now = attempts.current
        best = self.surveyed.best(now.state)
        if best is None:
            return attempts
        patience = 1.0 if attempts.alone else SHORT
        return changed(attempts, current=now.judged(best, patience, attempts.fall(now.state.problem)))

    def _turned(self, attempts: Attempts) -> Attempts:
        """With the descent that continues: the current one, the one set aside, or a new one."""
        now, aside = attempts.current, attempts.aside
        stalled, problem = now.age >= now.due, now.state.problem
        if not attempts.alone:
            least, other = self.surveyed.least(now.state), self.surveyed.least(aside.state)
            if now.watchable:
                stalled = stalled or least - PACE * (now.then - least) > other
                now = changed(now, watched=now.age, then=least)
            if not stalled and now.age < aside.age:
                return changed(attempts, current=now)
            if least >= other:
                return self._lost(attempts, now.state.t)
            return changed(attempts, alone=True, current=self._heir(now, aside))
        if not stalled:
            return attempts
        starts = () if self.surveyed.repeats(problem) else attempts.starts(problem)
        turn = attempts.begun % (len(starts) + 1)
        x = starts[turn] if turn < len(starts) else self._halved(now.state)
        fresh = Attempt(self.surveyed.restarted(now.state, x))
        return changed(attempts, current=fresh, aside=now, begun=attempts.begun + 1, alone=False)

    def _halved(self, state: State) -> Array:
        """The best point with a random half of its entries set to the point of the box nearest to 0."""
        best = self.surveyed.best(state)
        point: Array = (state.x if best is None else best.x).copy()
        on = np.flatnonzero(point)
        point[on[Draws.of(state.key, state.t + HALVES).permutation(on.size)[: (on.size + 1) // 2]]] = 0
        point = state.problem.box.project(point)
        point.flags.writeable = False
        return point

    def _heir(self, kept: Attempt, dropped: Attempt) -> Attempt:
        """The descent that continues, which answers with the best point of the dropped one if that is better."""
        return changed(kept, state=self.surveyed.inherited(kept.state, dropped.state))

    def _lost(self, attempts: Attempts, t: int) -> Attempts:
        """The new descent is dropped; the old one is polished, and stalls after a quarter as many queries."""
        aside = self._heir(attempts.aside, attempts.current)
        due, mark = aside.age + attempts.current.age // 4, self.surveyed.least(aside.state)
        again = changed(aside, state=self.surveyed.polished(aside.state, t), mark=mark, due=due)
        return changed(attempts, current=again, alone=True)


def _nearest(x: Array, problem: Problem) -> Array:
    """The point of the box nearest to 0."""
    return problem.box.project(np.zeros_like(x))


def _youth(problem: Problem) -> float:
    """The age before which a descent is not judged."""
    return max(LEAST, BACK * problem.width)
