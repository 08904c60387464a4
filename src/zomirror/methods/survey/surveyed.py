"""A descent with surveys, the larger part of the recommended method.

Every 300 queries the descent pauses for one batch, the survey, which asks x itself and x with its small entries set to
zero, for a few thresholds tau:

    prune      x <- x with every |x_i| < tau max |x| set to 0, if f rises by at most a quarter of the penalty saved
    return     x <- the best point measured, eta <- 2 eta, if F has risen and no better point was found for a while;
               between surveys too, if F is above its start by more than the first slope explains

Differences over random groups also move coordinates that do not matter, and at a kink of f they never stop doing so.
Pruning puts these back to an exact zero; returning with a larger eta makes the steps as small as the kink needs them.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar, cast

import numpy as np

from zomirror.checks import positive_integer
from zomirror.errors import ArgumentError
from zomirror.methods import group_testing
from zomirror.methods.averaging import Stretch
from zomirror.methods.descent import BestPoint, Measured, MirrorDescent, State
from zomirror.methods.estimator import Learned, Slopes
from zomirror.methods.group_memory import GroupMemory
from zomirror.methods.group_testing import OVER, ROOM, Search
from zomirror.methods.quasi_newton import SMALL, Refinement, aimed, chosen, sloped
from zomirror.methods.query import Query, Segment, scattered
from zomirror.methods.step import Halvable
from zomirror.methods.survey.findings import (
    DESCEND,
    DOUBT,
    LINE,
    ROUNDS,
    SEARCH,
    SLOPES,
    SURVEY,
    WORTH,
    Findings,
    unit,
    with_point,
)
from zomirror.methods.survey.pruning import GROWING, OUTSTANDING, Pruned, best_pruned, rows_of
from zomirror.numerics.arrays import Array, Values
from zomirror.numerics.frozen import changed
from zomirror.numerics.random import Key
from zomirror.problem import Problem

SHARE, NOISY_SHARE = 0.25, 0.75
"""A pruning is taken if f rises by at most 25 % of the penalty it saves; 75 % where f is noisy, since noise leaves many
small entries that f hardly depends on."""
SLACK = 0.01
"""F has risen when it is above the best F by 1 % of the penalty."""
WAIT = 0.25
"""Queries without a better point before the return to the best one, per free coordinate; at least `every`."""
ASTRAY = 2.0
"""A step is undone if F rises above its start by more than the first slope times twice the scale of x."""
SLOW = 0.2
"""A refinement begins when F fell by less than 20 % of the penalty between two surveys."""
RESETS = 2
"""L-BFGS that fails begins anew if it had at least 3 pairs; with fewer, as at a kink of f, the refinement ends."""
POLISHED = 1e-11
"""As WORTH, for a descent that has stalled: its own queries would gain less."""
AGAIN = 1e-6
"""Another search follows if the refinement of what the last one has found lowered F by 1e-6 of the penalty."""
FEW = 0.1
"""The first search is made where at most 10 % of the coordinates are away from the point of the box nearest to 0;
otherwise the penalty moves them all."""
ASKED = 4
"""How often a survey asks each of its points where f is noisy."""


@dataclass(frozen=True, slots=True)
class Surveyed:
    """A descent with a gradient memory that prunes small entries and returns to the best point where F has risen.

    A survey is made after `every` queries; its rows are x, then x pruned at each of `cuts` times max |x|. Where the
    descent has become slow and f has no noise, quasi-Newton steps follow on at most `refined` coordinates (0: none; see
    quasi_newton.py). A stochastic f(x; xi) is not surveyed, as values of different draws cannot be compared.
    """

    revision: ClassVar[int] = 5
    """As of a GroupMemory."""

    descent: MirrorDescent
    every: int = 300
    cuts: tuple[float, ...] = (1e-3, 1e-2, 3e-2, 1e-1)
    refined: int = 100

    def __post_init__(self) -> None:
        object.__setattr__(self, "every", positive_integer("every", self.every))
        if self.refined:
            object.__setattr__(self, "refined", positive_integer("refined", self.refined))
        estimator, step = self.descent.estimator, self.descent.step
        if not isinstance(estimator, GroupMemory) or estimator.link is not None:
            raise ArgumentError(f"expected a descent whose estimator is a GroupMemory without a link, got {estimator}")
        if not isinstance(step, Halvable):
            raise ArgumentError(f"expected a descent whose step rule can be halved, got {step}: use ScaleFree")
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
        """The descent's first state, and nothing found yet."""
        return self._begun(self.descent.init(x0, problem, key))

    def ask(self, state: State) -> Query:
        """The descent's query, or that of a survey or of a refinement."""
        findings: Findings = state.memory
        if findings.stage == DESCEND:
            return self.descent.ask(findings.descent)
        known = self.descent.learned(findings.descent)
        if findings.stage == SEARCH:
            return group_testing.asked(findings.search, state.problem, state.x, state.key)
        if findings.stage == SLOPES:
            radius, central = self._differences(findings, known, state.problem)
            return findings.refinement.slopes(state.x, radius, state.problem, central=central)
        if findings.stage == LINE:
            return findings.refinement.line(state.x, state.problem)
        return Query((Segment(state.x, 1), *self._prunings(state, known)) * _times(known))

    def tell(self, state: State, query: Query, values: Values) -> State:
        """One step of whatever was asked for."""
        stage = state.memory.stage
        if stage == DESCEND:
            return self._descended(state, query, values)
        tells = {SURVEY: self._surveyed, SEARCH: self._searched, SLOPES: self._sloped, LINE: self._lined}
        return tells[stage](state, query, values)

    def kept(self, state: State) -> BestPoint | None:
        """The best point, and how far above it another may seem by noise alone; None if f is stochastic."""
        findings: Findings = state.memory
        best = self.best(state)
        if best is None or best.slack or findings.answer_total >= best.fun:
            return best
        return BestPoint(findings.answer, findings.answer_f, findings.answer_total, 0.0)

    def inherited(self, state: State, other: State) -> State:
        """The state that also answers with the best point of another descent, which is dropped."""
        mine, point = self.kept(state), self.kept(other)
        if point is None or (mine is not None and mine.fun <= point.fun):
            return state
        answer = {"answer": point.x, "answer_f": point.f, "answer_total": point.fun}
        return changed(state, memory=changed(state.memory, **answer))

    def least(self, state: State) -> float:
        """F at the best point, infinite before there is one."""
        least: float = state.memory.least
        return least

    def comparable(self, state: State) -> bool:
        """Whether descents can be compared now: f is exact, and a survey with its refinement has just ended."""
        findings: Findings = state.memory
        if findings.stage != DESCEND or findings.asked:
            return False
        return not self.descent.learned(findings.descent).central

    def repeats(self, problem: Problem) -> bool:
        """Whether a second descent from the same start would go the same way: each coordinate is its own group."""
        return problem.width <= self.estimator.most

    def restarted(self, state: State, x: Array) -> State:
        """The state of a new descent from x in the same iteration, which knows the noise of f; without a search."""
        begun = self._begun(self.descent.restarted(state.memory.descent, x))
        return changed(begun, memory=changed(begun.memory, looked=True))

    def best(self, state: State) -> BestPoint | None:
        """The best iterate, None before there is one or if f is stochastic."""
        findings: Findings = state.memory
        if state.problem.stochastic or findings.least == math.inf:
            return None
        known = self.descent.learned(findings.descent)
        return BestPoint(findings.best, findings.f, findings.least, DOUBT * known.sd if known.central else 0.0)

    def polished(self, state: State, t: int) -> State:
        """The state that continues at the best point in iteration t, with a refinement for as long as that gains."""
        findings: Findings = state.memory
        x = findings.best
        findings = changed(findings, descent=self.descent.moved(findings.descent, t, x, f=findings.f))
        if self.refined:
            findings = self._refined(findings, x, state.problem, POLISHED)
        return changed(state, t=t, x=x, memory=findings)

    def _begun(self, descent: State) -> State:
        problem = descent.problem
        search, blank = Search.blank(problem), Refinement.blank(min(ROOM, problem.width))
        findings = Findings(descent, descent.x, descent.x, search, blank, Stretch.blank(descent.x))
        return changed(descent, memory=findings, pace=None)

    def _descended(self, state: State, query: Query, values: Values) -> State:
        findings: Findings = state.memory
        before, t = findings.descent, state.t + 1
        known, after = self.descent.learned(before), self.descent.tell(before, query, values)
        last, alpha = cast(Measured, after.last), after.pace
        total = last.f + state.problem.penalty(last.x)
        if findings.first == math.inf:
            findings = changed(findings, first=total)
        noted = with_point(findings, known, last.x, last.f, total, len(values))
        noted |= self._better(findings, query, values, state.problem)
        if total > findings.ceiling:
            undone = self.descent.moved(before, t, findings.best, halve=True)
            return changed(state, t=t, x=undone.x, memory=changed(findings, descent=undone, **noted), last=last)
        if known.central:
            noted["stretch"] = findings.stretch.met(after.x, total)
        if findings.ceiling == math.inf and alpha > 0:
            noted["ceiling"] = total + ASTRAY * self.scale * alpha
        asked = findings.asked + len(values)
        if asked >= self.every and alpha > 0 and not state.problem.stochastic:
            noted["stage"] = SURVEY
        findings = changed(findings, descent=after, asked=asked, **noted)
        if not findings.looked and self.refined and _pays(last.x, state.problem):
            # At the start: the step of the first batch has moved every coordinate, and is not taken.
            findings = changed(findings, descent=self.descent.moved(after, t, last.x, f=last.f))
            findings = self._looking(findings, last.x, state.problem, t, ())
        return changed(state, t=t, x=findings.descent.x, memory=changed(findings, looked=True), last=last)

    def _looking(self, findings: Findings, x: Array, problem: Problem, t: int, known: Any) -> Findings:
        """With a search at x to come, for coordinates other than the known ones."""
        learned = self.descent.learned(findings.descent)
        slope = float(np.abs(learned.w).max()) or 1.0
        shortest = group_testing.shortest(learned.sd, slope, self.scale, problem.dtype)
        search = group_testing.begun(problem, x, t, learned.sd, shortest, known)
        return changed(findings, search=search, stage=DESCEND if search.stage == OVER else SEARCH)

    def _differences(self, findings: Findings, known: Learned, problem: Problem) -> tuple[float, bool]:
        """The radius of the slopes, and whether they are two-sided."""
        two_sided = known.central or not (problem.penalty.l1 or findings.refinement.bends.any())
        return (findings.search.radius if two_sided else 0.0) or known.radius, two_sided

    def _searched(self, state: State, query: Query, values: Values) -> State:
        findings: Findings = state.memory
        x, f, problem, t = state.x, float(values[0]), state.problem, state.t + 1
        search = group_testing.told(findings.search, query, values)
        descent, last = self.descent.moved(findings.descent, t, x), Measured(x, f, math.nan, math.nan)
        findings = changed(findings, search=search, asked=findings.asked + len(values), descent=descent)
        findings = changed(findings, **self._better(findings, query, values, problem))
        if search.stage == OVER:
            new = search.count > search.known
            findings = changed(findings, sparse=new, stage=DESCEND)
            if new:
                findings = self._found(findings, x, f, problem, t)
        return changed(state, t=t, memory=findings, last=last)

    def _found(self, findings: Findings, x: Array, f: float, problem: Problem, t: int) -> Findings:
        """With a refinement of the coordinates that the search has found, and of those known before."""
        search = findings.search
        # `found` begins with what the refinement before had chosen, in the same order.
        bends = search.curvatures.copy()
        bends[: search.known] = findings.refinement.bends[: search.known]
        r = Refinement.blank(bends.size).taking(search.found[: search.count])
        r = changed(r, bends=np.where(np.arange(bends.size) < search.count, bends, 0.0))
        stage = SLOPES
        if not search.known:
            k = search.count
            r, stage = aimed(r, x, f, search.slopes[:k], bends[:k], problem, self.scale), LINE
        slopes = Slopes(search.found[search.known : search.count], search.slopes[search.known : search.count])
        descent = self.descent.moved(findings.descent, t, x, f=f, slopes=slopes)
        since = findings.least
        return changed(findings, refinement=r, worth=POLISHED, stage=stage, descent=descent, since=since)

    def _prunings(self, state: State, known: Learned) -> list[Segment]:
        x, problem = state.x, state.problem
        if not problem.penalty.l1:
            return []
        limits = np.array(self.cuts) * float(np.abs(x).max())
        rms = float(np.sqrt(np.mean(np.square(known.w))))
        growing = max(GROWING * problem.penalty.l1, OUTSTANDING * rms)
        small = -scattered(known.w, problem.free, problem.d) * np.sign(x) <= growing
        return [Segment(x, limits.size, Pruned(limits, problem.box.project(np.zeros_like(x)), small))]

    def _surveyed(self, state: State, query: Query, values: Values) -> State:
        findings: Findings = state.memory
        problem, known, t = state.problem, self.descent.learned(findings.descent), state.t + 1
        sd, times, halve = known.sd, _times(known), False
        share = NOISY_SHARE if known.central else SHARE
        # Divided before they are added: a refused point has the largest number there is.
        means = (values / times).reshape(times, -1).sum(axis=0)
        taken, least = best_pruned(query, means, problem, share, sd / math.sqrt(times))
        x, f, h = taken
        last = Measured(x, f, math.nan, math.nan)
        findings = changed(findings, **with_point(findings, known, x, f, f + h, len(values)))
        if least.f + least.h < findings.answer_total:
            findings = changed(findings, answer=least.x, answer_f=least.f, answer_total=least.f + least.h)
        risen = f + h > findings.least + SLACK * h + DOUBT * sd
        if risen and findings.waited >= max(self.every, WAIT * problem.width):
            x, f, halve = findings.best, findings.f, True
            findings = changed(findings, waited=0, stretch=findings.stretch.next(longer=False))
        if findings.stretch.over:
            settled = findings.stretch.settled(findings.first - DOUBT * sd)
            if settled:
                x, halve = problem.box.project(findings.stretch.mean), True
                x.flags.writeable = False
            findings = changed(findings, stretch=findings.stretch.next(longer=settled))
        slow = findings.since - findings.least <= SLOW * unit(findings, h)
        descent = self.descent.moved(findings.descent, t, x, f=f, halve=halve)
        findings = changed(findings, descent=descent, asked=0, since=findings.least, stage=DESCEND)
        if self.refined and slow and not findings.rest and not known.central:
            findings = self._refined(findings, x, problem, WORTH if problem.penalty.l1 else 0.0)
        findings = changed(findings, rest=max(0, findings.rest - 1))
        return changed(state, t=t, x=x, memory=findings, last=last)

    def _better(self, findings: Findings, query: Query, values: Values, problem: Problem) -> dict[str, Any]:
        """The answer, if a point of finite differences is the best so far and f is exact.

        With l1 they do not count: they would add tiny entries to x.
        """
        j, least = int(np.argmin(values)), min(findings.least, findings.answer_total)
        exact = not (problem.penalty.l1 or problem.stochastic or self.descent.learned(findings.descent).central)
        if not exact or values[j] >= least:
            return {}
        row, f = query.points(j, j + 1)[0], float(values[j])
        total = f + problem.penalty(row)
        if total >= least or problem.box.outside(row).size:
            return {}
        row.flags.writeable = False
        return {"answer": row, "answer_f": f, "answer_total": total}

    def _refined(self, findings: Findings, x: Array, problem: Problem, worth: float) -> Findings:
        """With a refinement at x to come, if any coordinate matters there."""
        small = SMALL if worth == WORTH else 0.0  # a polished descent refines small entries too
        w = self.descent.learned(findings.descent).w
        r = chosen(Refinement.blank(findings.refinement.chosen.size), x, w, problem, self.refined, small)
        return changed(findings, refinement=r, worth=worth, stage=SLOPES if r.count else DESCEND)

    def _sloped(self, state: State, query: Query, values: Values) -> State:
        findings: Findings = state.memory
        x, f, t = state.x, float(values[0]), state.t + 1
        slopes, bends = sloped(findings.refinement, values, query)
        refinement = aimed(findings.refinement, x, f, slopes, bends, state.problem, self.scale)
        known = self.descent.learned(findings.descent)
        noted = with_point(findings, known, x, f, refinement.total, len(values))
        noted |= self._better(findings, query, values, state.problem)
        measured = Slopes(refinement.chosen[: refinement.count], slopes)
        descent = self.descent.moved(findings.descent, t, x, f=f, slopes=measured)
        findings = changed(findings, descent=descent, refinement=refinement, stage=LINE, **noted)
        return changed(state, t=t, memory=findings, last=Measured(x, f, math.nan, math.nan))

    def _lined(self, state: State, query: Query, values: Values) -> State:
        findings: Findings = state.memory
        x, problem, r, t = state.x, state.problem, findings.refinement, state.t + 1
        known = self.descent.learned(findings.descent)
        totals = [f + problem.penalty(row) for f, row in zip(values.tolist(), rows_of(query, len(values)), strict=True)]
        doubt = DOUBT * known.sd if known.central else 0.0
        # The first of those that noise does not tell from the best: the full step, if possible.
        j = int(np.argmax(np.array(totals) <= min(totals) + doubt))
        f, gain, rows = known.f, r.total - totals[j], r.count + 1 + len(values)
        if gain > -doubt:
            x, f = query.points(j, j + 1)[0], float(values[j])
            x.flags.writeable = False
            findings = changed(findings, **with_point(findings, known, x, f, totals[j], len(values)))
            enough = max(findings.worth * rows * unit(findings, problem.penalty(x)), DOUBT * known.sd)
            stage = SLOPES if gain >= enough or (r.rounds < ROUNDS and findings.worth == WORTH) else DESCEND
        elif findings.worth < WORTH and (shorter := r.shorter(self.scale)) is not None:
            r, stage = shorter, LINE
        else:
            r, stage = changed(r, pairs=0, rounds=0), SLOPES if r.pairs > RESETS else DESCEND
        again = findings.sparse and findings.since - findings.least > AGAIN * unit(findings, problem.penalty(x))
        if stage == DESCEND:
            failed = 0 if r.rounds > ROUNDS else min(findings.failed + 1, 4)
            findings = changed(findings, asked=0, since=findings.least, rest=2**failed - 1, failed=failed)
        else:
            findings = changed(findings, refinement=r)
        descent = self.descent.moved(findings.descent, t, x, f=f)
        findings = changed(findings, descent=descent, stage=stage)
        if stage == DESCEND and again:
            findings = self._looking(findings, x, problem, t, r.chosen[: r.count])
        return changed(state, t=t, x=x, memory=findings, last=Measured(x, f, math.nan, math.nan))


def _pays(x: Array, problem: Problem) -> bool:
    """Whether f alone decides which coordinates matter at x: the penalty pulls at few others."""
    if problem.stochastic or not problem.penalty.l1:
        return not problem.stochastic
    return bool(np.count_nonzero(x != problem.box.project(np.zeros_like(x))) <= FEW * problem.width)


def _times(known: Learned) -> int:
    """How often a survey asks each of its points."""
    return ASKED if known.central else 1
