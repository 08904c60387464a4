"""Composite mirror descent: x_{t+1} = P(x_t, g_t, eta_t), as pure functions on a frozen state."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol, runtime_checkable

import numpy as np

from zomirror.methods.estimator import Estimator
from zomirror.methods.mirror import MirrorMap
from zomirror.methods.query import Query
from zomirror.methods.step import StepRule
from zomirror.numerics.arrays import Array, Values, norm2
from zomirror.numerics.random import Key
from zomirror.problem import Problem


@dataclass(frozen=True)
class Measured:
    """What the last batch told of the point that it was asked at."""

    x: Array
    f: float
    eta: float
    stationarity: float
    """|G|_2 with G = eta (x_t - x_{t+1}), the generalised gradient at x_t; it costs no query."""


@dataclass(frozen=True, slots=True)
class Kept:
    """A measured point, to be returned in place of the last one if that is worse by more than `slack`."""

    x: Array
    f: float
    fun: float
    slack: float


@dataclass(frozen=True, eq=False)
class State:
    """The whole of a run between two batches: with the method it decides everything that follows."""

    problem: Problem
    key: Key
    t: int
    """How many batches have been told."""
    x: Array
    """x_t: where the next batch will be asked."""
    memory: Any
    """The estimator's."""
    pace: Any
    """The step rule's."""
    last: Measured | None = None


class Moved(NamedTuple):
    """What a batch changes in a State: where the next one is asked, and what is known there."""

    x: Array
    memory: Any
    pace: Any
    last: Measured


class Method(Protocol):
    """An algorithm, as three pure functions."""

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

    def kept(self, state: State) -> Kept | None:
        """That point, if there is one."""
        ...


@runtime_checkable
class Retreating(Protocol):
    """A method that may do without the batch it has just asked."""

    def withdrawn(self, state: State) -> State | None:
        """The state to go on from when a value is not finite; None when there is none."""
        ...


@dataclass(frozen=True, slots=True)
class MirrorDescent:
    """x_{t+1} = argmin_{y in K} <g_t, y> + h(y) + eta_t B_phi(y, x_t): a map, an estimator and a step rule."""

    mirror: MirrorMap
    estimator: Estimator
    step: StepRule

    @property
    def revision(self) -> int:
        """That of the estimator, if it has one."""
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
        moved = self.moved(state.problem, state.x, state.memory, state.pace, query, values)
        return State(state.problem, state.key, state.t + 1, *moved)

    def moved(self, problem: Problem, x: Array, memory: Any, pace: Any, query: Query, values: Values) -> Moved:
        """The step itself, for a method that keeps these within a memory of its own."""
        with np.errstate(over="ignore", invalid="ignore"):
            # A diverging run is ended by whoever drives it, who looks at x, not by a warning.
            (f, g), memory = self.estimator.tell(memory, query, values)
            if g is None:
                return Moved(x, memory, pace, Measured(x, f, math.nan, math.nan))
            eta = self.step.eta(pace, g)
            x_next = self.mirror.step(x, g, eta, problem.penalty, problem.box)
            x_next.flags.writeable = False
            pace = self.step.advance(pace, self.mirror, x, x_next, eta)
            stationarity = eta * norm2(x, x_next)
        return Moved(x_next, memory, pace, Measured(x, f, eta, stationarity))
