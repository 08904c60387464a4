"""explain() and explain_many(): contrastive explanations of any classifier that can be asked."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np

from zomirror.arrays import Array
from zomirror.checks import positive_integer, seed_of
from zomirror.classifiers import Classifier, as_classifier, radius_hint
from zomirror.contrast.engine import Search, run_many
from zomirror.contrast.explanation import Explanation
from zomirror.contrast.progress import Callback, Found, Progress
from zomirror.contrast.search import found
from zomirror.contrast.search import search as search_for
from zomirror.contrast.setting import Setting
from zomirror.contrast.wanted import Wanted
from zomirror.descent import Method
from zomirror.errors import ArgumentError, ArgumentTypeError, BudgetError, OracleError, ZomirrorError
from zomirror.oracle import Ledger, MemoryLedger
from zomirror.result import Status


def explain(
    model: Any,
    x0: object,
    *,
    kind: str = "PN",
    l1: float = 0.1,
    l2: float = 0.1,
    kappa: float = 0.0,
    bounds: object = (0.0, 1.0),
    budget: int = 10_000,
    rng: object = None,
    loss: str = "hinge",
    method: Method | None = None,
    label: int | None = None,
    target: int | None = None,
    baseline: object = 0.0,
    fixed: object = None,
    signed: bool = False,
    scale: object = None,
    mean: object = None,
    std: object = None,
    search: int = 0,
    feature_names: object = None,
    class_names: object = None,
    callback: Callback | None = None,
) -> Explanation:
    """The few features that hold up the model's decision on x0.

    A pertinent negative (`kind="PN"`) is a small, sparse change after which the class is another (`target`, if
    given); a pertinent positive ("PP") is a small, sparse part of x0 that alone keeps the class.

    `model` maps a batch (n, *shape) to scores (n, classes): a function, the path of an .onnx file, a torch
    module or a fitted scikit-learn classifier. Scores are best given as logits; `kappa` is in their units.
    `bounds` are those of valid inputs. Changes are measured in units of each feature's range unless `scale` says
    otherwise. A PN only adds (x >= 0) unless `signed`. A PP lies between `baseline` and x0. `fixed` features
    (a mask or indices) stay as they are. With `mean` and `std`, x0 is normalised and the bounds speak of
    x0 * std + mean. `label` explains a class other than the predicted one.

    Returns the best valid point seen, within `budget` queries, the one for the label included. When nothing valid
    was found it says so (`valid`, `status`, `message`) and gives the point that came nearest. The run ends early
    when nothing better has been found for a fifth of the budget. `search=n` tries n strengths of the penalty
    within the same budget and returns the sparsest valid explanation. `callback(glimpse)` is shown every iterate
    (x, fun, best, nfev, nnz) and ends the descent by raising StopIteration.
    """
    wanted = Wanted(
        kind=kind,
        l1=l1,
        l2=l2,
        kappa=kappa,
        bounds=bounds,
        budget=budget,
        loss=loss,
        method=method,
        label=label,
        target=target,
        baseline=baseline,
        fixed=fixed,
        signed=signed,
        scale=scale,
        mean=mean,
        std=std,
        search=search,
        feature_names=feature_names,
        class_names=class_names,
    )
    if callback is not None and not callable(callback):
        raise ArgumentTypeError(f"expected callback to be a function of one argument, got {callback!r}")
    place, seed = wanted.setting(x0), seed_of(rng)
    explained = _explain([place], as_classifier(model), wanted, [seed], lockstep=1, callback=callback)[0]
    if isinstance(explained, Failed):
        raise explained.error
    return explained


def explain_many(
    model: Any,
    X: Iterable[object],
    *,
    rng: object = None,
    lockstep: int = 8,
    progress: bool | None = None,
    **options: Any,
) -> list[Explanation]:
    """explain() for every input of X, several at a time in joint batches; one result each, in order.

    Input i gets the answer of explain(model, X[i], rng=seed) with the seed that its result names, whatever the
    `lockstep` (the model's scores of a row being the same in every batch). When the model fails on one input, its
    explanation has the status ERROR and the others go on. `progress` shows a bar; by default only on a terminal.
    `options` are those of explain().
    """
    positive_integer("lockstep", lockstep)
    try:
        wanted = Wanted(**options)
    except TypeError as error:
        if isinstance(error, ArgumentTypeError):
            raise
        raise ArgumentTypeError(f"expected options of explain(): {error}") from None
    places = []
    for i, x0 in enumerate(X):
        try:
            places.append(wanted.setting(x0))
        except (ArgumentError, ArgumentTypeError) as error:
            raise type(error)(f"input {i}: {error}") from None
    children = np.random.SeedSequence(seed_of(rng)).spawn(len(places))
    seeds = [int(child.generate_state(1, np.uint64)[0]) for child in children]
    with _bar(len(places), show=progress) as advance:
        explained = _explain(places, as_classifier(model), wanted, seeds, lockstep=lockstep, advance=advance)
    failures = [one for one in explained if isinstance(one, Failed)]
    if len(failures) == len(explained) > 0 and not any(isinstance(one.error, OracleError) for one in failures):
        raise failures[0].error  # an argument that fits none of the inputs, so there is nothing to lose
    return [one.result if isinstance(one, Failed) else one for one in explained]


@dataclass(frozen=True, slots=True, eq=False)
class Failed:
    """An input whose search ended with an error, and what it had found by then."""

    error: ZomirrorError
    result: Explanation


def _explain(
    places: list[Setting],
    classifier: Classifier,
    wanted: Wanted,
    seeds: list[int],
    *,
    lockstep: int,
    advance: Callable[[], None] = lambda: None,
    callback: Callback | None = None,
) -> list[Explanation | Failed]:
    """One explanation a place."""
    for place in places:
        wanted.refuse_misnamed(place)
    searches, ledgers = [], [MemoryLedger(wanted.budget) for _ in places]
    for place, seed, ledger in zip(places, seeds, ledgers, strict=True):
        aim = wanted.aim(seed, _radius(classifier, place))
        searches.append(_guarded(Progress(place, aim, callback), wanted, ledger))
    return run_many(searches, classifier, ledgers, lockstep=lockstep, done=lambda *_: advance())


def _guarded(progress: Progress, wanted: Wanted, ledger: Ledger) -> Search[Explanation | Failed]:
    """The search, which a failing model ends with what was found so far."""
    try:
        ended = yield from search_for(progress)
    except (BudgetError, OracleError, ArgumentError, ArgumentTypeError) as error:
        status = Status.MAX_SENT if isinstance(error, BudgetError) else Status.ERROR
        ended = found(progress, status, np.full_like(progress.scores, np.nan), str(error))
        if status is Status.ERROR:
            partial = _explanation(progress, ended, wanted, ledger)
            if isinstance(error, OracleError):
                error.result = partial
            return Failed(error, partial)
    return _explanation(progress, ended, wanted, ledger)


def _explanation(progress: Progress, ended: Found, wanted: Wanted, ledger: Ledger) -> Explanation:
    place, best, aim = progress.setting, ended.best, progress.aim
    known = ended.scores_after.size > 0 and not np.isnan(ended.scores_after).any()
    classes = ended.scores_before.size
    return Explanation(
        kind=place.kind,
        valid=best.valid,
        label=ended.label,
        contrast_label=int(np.argmax(ended.scores_after)) if known else -1,
        x=place.to_change(best.w),
        x0=place.x0,
        perturbed=place.to_input(best.w[None])[0],
        scores_before=ended.scores_before,
        scores_after=ended.scores_after,
        margin=best.margin,
        objective=best.fun,
        l1_norm=float(np.abs(best.w).sum(dtype=np.float64)),
        l2_norm=float(np.linalg.norm(best.w.astype(np.float64))),
        nnz=int(np.count_nonzero(best.w)),
        nfev=ledger.used,
        sent=ledger.sent,
        seed=aim.seed,
        status=ended.status if best.valid or ended.status in _FAULTS else Status.NOT_FOUND,
        message=_message(ended, wanted),
        history=ended.history,
        scale=_compact(place.scale, place.x0.shape),
        settings=wanted.record(),
        feature_names=wanted.feature_names,
        class_names=wanted.class_names if classes == aim.classes else None,
    )


_FAULTS = (Status.ERROR, Status.NONFINITE)


def _compact(scale: Array | float, shape: tuple[int, ...]) -> Array:
    """One number when it is the same for all features."""
    flat = np.ravel(scale)
    return flat[:1].reshape(()) if (flat == flat[0]).all() else flat.reshape(shape)


def _message(ended: Found, wanted: Wanted) -> str:
    if ended.best.valid:
        return f"{ended.status.value}; {ended.note}" if ended.note else ended.status.value
    if ended.status in _FAULTS:
        return ended.note
    tries = ["a larger budget", "smaller l1 and l2", "another seed"]
    if wanted.kind == "PN":
        tries += [] if wanted.signed else ["signed=True"]
        tries += [] if wanted.target is None else ["another target"]
        remedy = f"the class did not change (best margin {ended.best.margin:.3g})"
    else:
        remedy = f"the class was not kept (best margin {ended.best.margin:.3g})"
    tries += [] if wanted.fixed is None else ["fewer fixed features"]
    return f"{Status.NOT_FOUND.value}: {remedy}; try {', '.join(tries)}"


def _radius(classifier: Classifier, place: Setting) -> float | None:
    """How far to look in units of w: scores that jump are flat between their steps, and some must be crossed."""
    hint = radius_hint(classifier, place.x0)
    return None if hint is None else float(np.median(hint.ravel() / place.scale))


@contextmanager
def _bar(total: int, *, show: bool | None) -> Iterator[Callable[[], None]]:
    """A progress bar over the inputs, which the yielded function moves on by one."""
    from rich.console import Console  # only those who explain many wait for it
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
    from rich.progress import Progress as Bar

    console = Console(stderr=True)
    hidden = not (console.is_terminal if show is None else show)
    columns = (TextColumn("explaining"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Bar(*columns, console=console, disable=hidden, transient=True) as bar:
        task = bar.add_task("explaining", total=total)
        yield lambda: bar.advance(task)
