"""Composite mirror descent, x_{t+1} = P(x_t, g_t, eta_t); and what a method is: pure functions on a frozen state.

A method that wraps another one keeps the inner State in its own memory and calls the inner `init`, `ask` and `tell`.
Everything else that it has to tell the inner method goes through `Steerable`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any, Protocol, cast, runtime_checkable

import numpy as np

from zomirror.methods.estimator import Correctable, Estimator, Learned, Slopes
from zomirror.methods.mirror import MirrorMap
from zomirror.methods.query import Query
from zomirror.methods.step import Halvable, StepRule
from zomirror.numerics.arrays import Array, Values, norm2
from zomirror.numerics.frozen import changed
from zomirror.numerics.random import Key
from zomirror.problem import Problem


@dataclass(frozen=True)
class Measured:
    """The iterate that the last batch was asked at, and what the batch told of it."""

    x: Array
    f: float
    eta: float
    """The step size; NaN when no step was taken."""
    stationarity: float
    """|G|_2 with G = eta (x_t - x_{t+1}), the generalised gradient at x_t; it costs no query."""


@dataclass(frozen=True, slots=True)
class BestPoint:
    """The best measured point: returned in place of the last iterate if F there is larger by more than `slack`."""

    x: Array
    f: float
    fun: float
    """F = f + h."""
    slack: float


@dataclass(frozen=True, eq=False)
class State:
    """Everything that a run is between two batches; with the method it decides everything that follows.

    The problem, the key and `last` are not stored in checkpoints: the next query does not depend on `last`, and the
    configuration gives the others.
    """

    problem: Problem = field(metadata={"stored": False})
    key: Key = field(metadata={"stored": False})
    """The key of the random generator."""
    t: int
    """The number of batches told so far in the whole run."""
    x: Array
    """x_t, the iterate at which the next batch is asked."""
    memory: Any
    """The estimator's memory; in a method that wraps another one, its own memory, which holds the inner State."""
    pace: Any = None
    """The step rule's memory; None in a method that wraps another one."""
    last: Measured | None = field(default=None, metadata={"stored": False})


class Method(Protocol):
    """An algorithm as three pure functions."""

    def init(self, x0: Array, problem: Problem, key: Key) -> State:
        """The state before the first query."""
        ...

    def ask(self, state: State) -> Query:
        """The next batch; asking twice gives the same."""
        ...

    def tell(self, state: State, query: Query, values: Values) -> State:
        """The state after the batch has been answered."""
        ...


@runtime_checkable
class Keeper(Protocol):
    """A method that keeps the best point it has measured."""

    def kept(self, state: State) -> BestPoint | None:
        """That point, None before there is one."""
        ...


@runtime_checkable
class Retreating(Protocol):
    """A method that can continue elsewhere when a batch has a value that is not finite."""

    def withdrawn(self, state: State) -> State | None:
        """The state to continue from; None when there is none, and the run ends."""
        ...


class Steerable(Method, Protocol):
    """A method that can be wrapped: the wrapper asks batches of its own in between, and then moves the iterate."""

    def learned(self, state: State) -> Learned:
        """What is known of f, to read."""
        ...

    def moved(
        self,
        state: State,
        t: int,
        x: Array,
        *,
        f: float | None = None,
        slopes: Slopes | None = None,
        halve: bool = False,
    ) -> State:
        """The state that continues at x in iteration t; f and slopes are what was measured at x.

        With `halve`, steps are half as long from now on. Slopes also set the first step size, if there is none yet.
        """
        ...

    def restarted(self, state: State, x: Array) -> State:
        """The state of a new descent from x in the same iteration, which knows only the noise of f."""
        ...


@dataclass(frozen=True, slots=True)
class MirrorDescent:
    """x_{t+1} = argmin_{y in K} <g_t, y> + h(y) + eta_t B_phi(y, x_t): a map, an estimator and a step rule.

    It is `Steerable` if its estimator is `Correctable` and its step rule `Halvable`.
    """

    mirror: MirrorMap
    estimator: Estimator
    step: StepRule

    @property
    def revision(self) -> int:
        """That of the estimator, 0 if it has none."""
        return int(getattr(self.estimator, "revision", 0))

    def init(self, x0: Array, problem: Problem, key: Key) -> State:
        """x_1 = x0; refuses a problem that the mirror map cannot handle."""
        self.mirror.check(problem.penalty, problem.box)
        return State(problem, key, 0, x0, self.estimator.init(problem), self.step.init())

    def ask(self, state: State) -> Query:
        """The estimator's query at x_t."""
        return self.estimator.ask(state.memory, state.problem, state.x, state.t, state.key)

    def tell(self, state: State, query: Query, values: Values) -> State:
        """One step."""
        x, pace, problem, t = state.x, state.pace, state.problem, state.t + 1
        with np.errstate(over="ignore", invalid="ignore"):
            # No warning where a run diverges: the caller looks at x and ends it.
            (f, g), memory = self.estimator.tell(state.memory, query, values)
            if g is None:
                return changed(state, t=t, memory=memory, last=Measured(x, f, math.nan, math.nan))
            eta = self.step.eta(pace, g)
            x_next = self.mirror.step(x, g, eta, problem.penalty, problem.box)
            x_next.flags.writeable = False
            pace = self.step.advance(pace, self.mirror, x, x_next, eta)
            stationarity = eta * norm2(x, x_next)
        return changed(state, t=t, x=x_next, memory=memory, pace=pace, last=Measured(x, f, eta, stationarity))

    def learned(self, state: State) -> Learned:
        """The estimator's memory, to read."""
        known: Learned = state.memory
        return known

    def moved(
        self,
        state: State,
        t: int,
        x: Array,
        *,
        f: float | None = None,
        slopes: Slopes | None = None,
        halve: bool = False,
    ) -> State:
        """As in Steerable: the estimator is told f and slopes, and eta is doubled to halve the steps."""
        memory, pace = state.memory, state.pace
        if f is not None:
            memory = cast(Correctable, self.estimator).corrected(memory, state.problem, f, slopes)
        if not pace and slopes is not None and slopes.values.size:
            pace = self.step.eta(pace, slopes.values)
        if halve:
            pace = cast(Halvable, self.step).halved(pace)
        return changed(state, t=t, x=x, memory=memory, pace=pace)

    def restarted(self, state: State, x: Array) -> State:
        """As in Steerable."""
        memory = cast(Correctable, self.estimator).restarted(state.memory, state.problem)
        return State(state.problem, state.key, state.t, x, memory, self.step.init())
