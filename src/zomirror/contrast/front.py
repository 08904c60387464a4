"""From a call to its answers: one input or many, in this process or over workers, in memory or in run directories."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from dataclasses import fields
from typing import Any

import numpy as np

from zomirror.checks import positive_integer, seed_of
from zomirror.classifiers import as_classifier
from zomirror.contrast.durable import Shelf, asked
from zomirror.contrast.explanation import Explanation
from zomirror.contrast.options import Wanted
from zomirror.contrast.progress import Callback
from zomirror.contrast.searches import Failed, Task, explain_all
from zomirror.contrast.spread import explain_spread
from zomirror.engine.durable import PathLike, stored_seed
from zomirror.errors import ArgumentError, ArgumentTypeError, OracleError
from zomirror.parallel import Workers
from zomirror.runs.group import RunGroup

OPTIONS = frozenset(field.name for field in fields(Wanted))
"""What may be given for many inputs alike."""


def find_one(
    task: Task,
    model: Any,
    x0: object,
    wanted: Wanted,
    *,
    rng: object,
    callback: Callback | None,
    max_sent: int | None,
    run_dir: PathLike | None,
) -> Explanation:
    """What the task finds for x0."""
    if callback is not None and not callable(callback):
        raise ArgumentTypeError(f"expected callback to be a function of one argument, got {callback!r}")
    place, shelf = wanted.setting(x0), None if run_dir is None else Shelf(run_dir)
    seed = seed_of(stored_seed(run_dir) if run_dir is not None and rng is None else rng)
    [found] = explain_all(
        [place],
        as_classifier(model),
        wanted,
        [seed],
        task=task,
        lockstep=1,
        callback=callback,
        max_sent=max_sent,
        shelf=shelf,
    )
    if isinstance(found, Failed):
        raise found.error
    return found


def find_many(
    task: Task,
    model: Any,
    X: Iterable[object],
    options: Mapping[str, Any],
    *,
    rng: object,
    lockstep: int,
    progress: bool | None,
    max_sent: int | None,
    run_dir: PathLike | None,
    workers: Any,
) -> list[Explanation]:
    """What the task finds for each of X; `options` are those of Wanted."""
    positive_integer("lockstep", lockstep)
    refuse_unknown(task, options)
    wanted = Wanted(**options)
    places = []
    for i, x0 in enumerate(_inputs(X, task.name)):
        try:
            places.append(wanted.setting(x0))
        except (ArgumentError, ArgumentTypeError) as error:
            raise type(error)(f"input {i}: {error}") from None
    seed = seed_of(stored_seed(run_dir) if run_dir is not None and rng is None else rng)
    classifier = as_classifier(model)
    children = np.random.SeedSequence(seed).spawn(len(places))
    seeds = [int(child.generate_state(1, np.uint64)[0]) for child in children]
    decided = asked(wanted, classifier, task.revision)
    common = {"task": f"{task.name}_many", "members": len(places), "seed": seed, "asked": decided}
    plan = None if workers is None else Workers.of(workers)
    group = nullcontext() if run_dir is None else RunGroup.open(run_dir, common)
    with _bar(task.doing, len(places), show=progress) as advance, group as opened:
        shelf = None if opened is None else Shelf(opened)
        kept: dict[str, Any] = {"task": task, "max_sent": max_sent, "shelf": shelf}
        if plan is None:
            found = explain_all(places, classifier, wanted, seeds, lockstep=lockstep, advance=advance, **kept)
        else:
            found = explain_spread(places, classifier, wanted, seeds, plan, advance, **kept)
        if opened is not None and shelf is not None and shelf.full == len(places):
            opened.finish({"members": len(places)})
    failures = [one for one in found if isinstance(one, Failed)]
    if len(failures) == len(found) > 0 and not any(isinstance(one.error, OracleError) for one in failures):
        raise failures[0].error  # an argument that fits none of the inputs, so there is nothing to lose
    return [one.result if isinstance(one, Failed) else one for one in found]


def refuse_unknown(task: Task, options: Iterable[str], known: frozenset[str] = OPTIONS) -> None:
    """Refuse options that are not among the known ones; a callback, say, is for one input."""
    unknown = sorted(set(options) - known)
    if unknown:
        raise ArgumentTypeError(
            f"expected options of {task.name}_many() among {', '.join(sorted(known))}, got {', '.join(unknown)}"
        )


def _inputs(X: Any, task: str) -> Iterator[object]:
    try:
        return iter(X)
    except TypeError:
        raise ArgumentTypeError(
            f"expected X to be a sequence of inputs, got {type(X).__name__}: use {task} for one"
        ) from None


@contextmanager
def _bar(doing: str, total: int, *, show: bool | None) -> Iterator[Callable[[], None]]:
    """A progress bar over the inputs, which the yielded function moves on by one."""
    from rich.console import Console  # only those who have many inputs wait for it
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
    from rich.progress import Progress as Bar

    console = Console(stderr=True)
    hidden = not (console.is_terminal if show is None else show)
    columns = (TextColumn(doing), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Bar(*columns, console=console, disable=hidden, transient=True) as bar:
        task = bar.add_task(doing, total=total)
        yield lambda: bar.advance(task)
