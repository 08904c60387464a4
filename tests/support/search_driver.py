"""Drives the stages of a search by hand, without the engine, and checks on the way what every stage promises.

The points asked are a list of arrays of one shape and dtype, or the rows of an array, inside the box. Starts are
read-only, so a stage that writes into one raises.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from zomirror.contrast.candidate import Candidate, Goal
from zomirror.contrast.options import Options
from zomirror.contrast.progress import Callback, Progress
from zomirror.contrast.search.local_refinement import Pull
from zomirror.problem import Box, ElasticNet

Rows = NDArray[Any]
Model = Callable[[Rows], Rows]
T = TypeVar("T")

GOAL = Goal(ElasticNet(0.1, 0.1), 0.0)
CHANGE = Pull(0, kept=False)
"""Class 0 has to lose."""


def read_only(values: Any, dtype: Any = np.float64) -> Rows:
    """A copy that cannot be written into."""
    array = np.array(values, dtype=dtype)
    array.flags.writeable = False
    return array


def begun(model: Model, w: Any, goal: Goal = GOAL, pull: Pull = CHANGE) -> Candidate:
    """The candidate at w, which is copied and read-only."""
    w = read_only(w, getattr(w, "dtype", np.float64))
    return goal.candidate(w, float(pull.margins(model(w[None]))[0]))


def drive(steps: Generator[Any, Any, T], answer: Model, box: Box) -> tuple[T, Rows]:
    """What a generator of lists of points returns, and all points that it asked, in order."""
    asked: list[Rows] = []
    try:
        points = next(steps)
        while True:
            assert isinstance(points, list | np.ndarray)
            assert len(points)
            assert {(point.ndim, point.dtype) for point in points} == {(1, points[0].dtype)}
            batch = np.stack(list(points))
            assert ((batch >= box.lower) & (batch <= box.upper)).all()
            asked.append(batch)
            points = steps.send(answer(batch))
    except StopIteration as stop:
        end: T = stop.value
        return end, np.concatenate(asked) if asked else np.empty((0, 0))


def conduct(search: Generator[Any, Any, T], model: Model) -> tuple[T, int]:
    """What a generator of requests returns, and how many rows the model was shown."""
    rows = 0
    try:
        request = next(search)
        while True:
            points = request.query.points()
            rows += len(points)
            request = search.send(request.keep(model(request.inputs(points)), len(points)))
    except StopIteration as stop:
        end: T = stop.value
        return end, rows


def progress_of(
    x0: Any, *, seed: int = 0, radius: float | None = None, callback: Callback | None = None, **options: Any
) -> Progress:
    """A search for the explanation of x0 that has not begun; the options are those of explain()."""
    asked = Options.of("explain", options)
    place = asked.features.place(read_only(x0, np.asarray(x0).dtype), asked.kind)
    return Progress(place, asked, seed, radius, callback)


def labelled(progress: Progress, model: Model) -> Progress:
    """The same with the class of x0 known, as every stage after the first finds it."""
    x0 = progress.place.x0[None]
    progress.scores = np.asarray(model(x0)[0], np.float64)
    progress.label = int(np.argmax(progress.scores))
    progress.used = 1
    progress.distance = max(float(progress.margins(model(x0))[0]), 0.0)
    return progress
