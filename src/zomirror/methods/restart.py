"""The recommended method: a surveyed descent that begins again where it has come to rest.

A descent ends in some basin, and which one is decided in its first batches. Beside a network the basins differ by
factors, so a descent at rest is set aside and another one has its turn:

    at rest     when F has not fallen by a tenth of the penalty for half as many queries as the descent had had; by a
                fiftieth, where x0 is the point of the box nearest to 0
    begin       by turns a quarter of the way from that point to x0, at x0, where other groups lead elsewhere, and at
                the best point, half of its entries zero; always there if each coordinate is a group of its own at first
    go on       with the better of the two, when the new one is at rest too, falls too slowly to catch up, or has had as
                many queries as the old one

A new descent that lost is dropped, and the old one is polished and has a quarter as many queries before the next. So a
descent that goes on falling is not disturbed, and one that is done spends what is left of the budget on looking
elsewhere. From a start full of entries most of them have to go, and which ones stay is a matter of chance: a start with
less in it leads elsewhere more surely than other groups do, and it pays to look soon.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from zomirror.methods.descent import Kept, State
from zomirror.methods.query import Query
from zomirror.methods.survey import DESCEND, WAIT, Course, Surveyed
from zomirror.numerics.arrays import Array, Values
from zomirror.numerics.frozen import changed
from zomirror.numerics.random import Draws, Key
from zomirror.problem import Problem

FALL, FULL_FALL = 0.02, 0.1
"""F has clearly fallen when it is lower by this part of the penalty: the second unless x0 is as near to 0 as can be."""
PAUSE, LEAST = 0.5, 1_000
"""A descent is at rest when F has not clearly fallen for this part of the queries it had had, and for so many."""
BACK = 2 * WAIT
"""And for so many queries for each free coordinate: twice as long as it may take to go back where F has risen."""
LATER, PACE = 1.5, 1.5
"""A new descent is watched at ages that grow by the first factor. One that would be above the old one still, had it
fallen by so many times what it fell by since it was last watched, is dropped."""
SHORT = 0.5
"""A fall of a descent that another one was set aside for postpones its rest by this part of that only."""
NEARER = 0.25
"""How far from the point of the box nearest to 0 to x0 a descent begins that is to keep less."""
HALVES = 1 << 62
"""Added to t: what is set to zero is drawn apart from the groups of iteration t."""
REVISION = 2
"""Raised whenever the same values lead it to other points."""


@dataclass(frozen=True, eq=False)
class Attempt:
    """One descent: where it is and how it has fared."""

    x: Array
    pace: float
    course: Course
    age: int = 0
    """Queries it has had."""
    mark: float = math.inf
    """F when it last fell clearly."""
    due: int = 0
    """The age at which it is at rest, if F does not clearly fall before."""
    watched: int = 0
    """The age at which its pace was last looked at; 0 before the first time."""
    then: float = math.inf
    """F at its best point at that age."""

    @property
    def least(self) -> float:
        """F at its best point."""
        return self.course.least

    def judged(self, problem: Problem, patience: float, fall: float) -> Attempt:
        """Due later if F has clearly fallen."""
        best, h = self.course.best, problem.penalty
        if self.least < self.mark - fall * (h(best) - h(_nearest(best, problem))):
            pause = max(self.youth, PAUSE * self.age)
            return changed(self, mark=self.least, due=self.age + int(patience * pause))
        return self

    @property
    def youth(self) -> float:
        """Before this age nothing is said of a descent."""
        return max(LEAST, BACK * self.course.descent.w.size)

    @property
    def watchable(self) -> bool:
        """Whether its pace is to be looked at."""
        return self.age >= (LATER * self.watched or self.youth)

    def behind(self, other: Attempt) -> bool:
        """Whether it would not catch up with the other one, falling on as it has since it was last watched."""
        return self.least - PACE * (self.then - self.least) > other.least

    @property
    def unborn(self) -> Attempt:
        """What stands for no descent."""
        return changed(self, course=changed(self.course, least=math.inf))


@dataclass(frozen=True, eq=False)
class Attempts:
    """The descent that has its turn, and the one that was set aside for it."""

    start: Array
    """x0."""
    current: Attempt
    aside: Attempt
    """Without a best point when nothing is set aside."""
    begun: int = 0
    """How many descents were begun after the first."""

    @property
    def alone(self) -> bool:
        """Whether nothing is set aside."""
        return self.aside.least == math.inf

    def starts(self, problem: Problem) -> tuple[Array, ...]:
        """Where to begin by turns: x0, and before that nearer to 0, unless x0 is as near as can be."""
        nearest = _nearest(self.start, problem)
        near: Array = problem.box.project(nearest + self.start.dtype.type(NEARER) * (self.start - nearest))
        near.flags.writeable = False
        return (self.start,) if np.array_equal(near, self.start) else (near, self.start)

    def fall(self, problem: Problem) -> float:
        """The part of the penalty by which F must fall for a descent not to be at rest."""
        return FALL if np.array_equal(self.start, _nearest(self.start, problem)) else FULL_FALL

    @property
    def best(self) -> Course:
        """The course that has met the best point."""
        now, aside = self.current.course, self.aside.course
        return aside if aside.least < now.least else now


@dataclass(frozen=True, slots=True)
class Restarted:
    """A surveyed descent that begins again where it has come to rest, and keeps the best point of all; see above.

    Where f is known to be noisy, or stochastic, there is one descent only: neither rest nor the better of two can be
    told. A new descent that meets a value that is not finite is dropped.
    """

    surveyed: Surveyed

    @property
    def revision(self) -> int:
        """Its own and that of the descent."""
        return REVISION + self.surveyed.revision

    def init(self, x0: Array, problem: Problem, key: Key) -> State:
        """The first descent."""
        state = self.surveyed.init(x0, problem, key)
        attempt = Attempt(x0, state.pace, state.memory)
        return changed(state, memory=Attempts(x0, attempt, attempt.unborn))

    def ask(self, state: State) -> Query:
        """The query of the descent that has its turn."""
        return self.surveyed.asked(state, state.memory.current.course)

    def tell(self, state: State, query: Query, values: Values) -> State:
        """One step of that descent, and perhaps a change of turns."""
        attempts: Attempts = state.memory
        now = attempts.current
        x, course, pace, last = self.surveyed.told(state, now.course, query, values)
        now = changed(now, x=x, pace=pace, course=course, age=now.age + len(values))
        attempts, t = changed(attempts, current=now), state.t + 1
        if now.course.stage == DESCEND and not now.course.asked and not now.course.descent.central:
            # A survey has been made, and what it found worth refining is refined.
            now = now.judged(state.problem, 1.0 if attempts.alone else SHORT, attempts.fall(state.problem))
            attempts = self._turned(changed(attempts, current=now), changed(state, t=t))
        if attempts.best is not attempts.current.course:
            # How nearly stationary a descent is that may be dropped says nothing about the point that is kept.
            last = changed(last, stationarity=math.nan)
        now = attempts.current
        return State(state.problem, state.key, t, now.x, attempts, now.pace, last)

    def withdrawn(self, state: State) -> State | None:
        """Without the descent that has just met a value that is not finite; None if there is no other one."""
        attempts: Attempts = state.memory
        if attempts.alone:
            return None
        attempts = self._lost(attempts, state.problem)
        again = attempts.current
        return changed(state, t=state.t + 1, x=again.x, pace=again.pace, memory=attempts)

    def kept(self, state: State) -> Kept | None:
        """The best point of all descents."""
        return self.surveyed.kept_by(state.memory.best, state.problem)

    def _turned(self, attempts: Attempts, state: State) -> Attempts:
        """With the descent whose turn it is now."""
        now, aside = attempts.current, attempts.aside
        rests = now.age >= now.due
        if not attempts.alone:
            if now.watchable:
                rests = rests or now.behind(aside)
                now = changed(now, watched=now.age, then=now.least)
            if not rests and now.age < aside.age:
                return changed(attempts, current=now)
            if now.least < aside.least:
                return changed(attempts, aside=aside.unborn)
            return self._lost(attempts, state.problem)
        if not rests:
            return attempts
        begun = attempts.begun + 1
        grouped = now.course.descent.w.size > self.surveyed.estimator.most
        starts = attempts.starts(state.problem) if grouped else ()
        turn = attempts.begun % (len(starts) + 1)
        x = starts[turn] if turn < len(starts) else _halved(now.course.best, state)
        return changed(attempts, current=self._begin(x, now, state), aside=now, begun=begun)

    def _begin(self, x: Array, other: Attempt, state: State) -> Attempt:
        """A descent from x, which knows of the other one only how precise f is."""
        fresh, known = self.surveyed.init(x, state.problem, state.key), other.course.descent
        course: Course = fresh.memory
        memory = changed(course.descent, radius=known.radius, sd=known.sd)
        return Attempt(x, fresh.pace, changed(course, descent=memory))

    def _lost(self, attempts: Attempts, problem: Problem) -> Attempts:
        """The new descent is dropped; the old one is polished, and goes on for a quarter as long."""
        aside = attempts.aside
        due, course = aside.age + attempts.current.age // 4, self.surveyed.polished(aside.course, problem)
        again = changed(aside, x=course.best, course=course, mark=aside.least, due=due)
        return changed(attempts, current=again, aside=aside.unborn)


def _nearest(x: Array, problem: Problem) -> Array:
    """The point of the box nearest to 0."""
    return problem.box.project(np.zeros_like(x))


def _halved(x: Array, state: State) -> Array:
    """x with a random half of its entries set to the point of the box nearest to 0."""
    on = np.flatnonzero(x)
    gone = on[Draws.of(state.key, state.t + HALVES).permutation(on.size)[: (on.size + 1) // 2]]
    point: Array = x.copy()
    point[gone] = 0
    point = state.problem.box.project(point)
    point.flags.writeable = False
    return point
