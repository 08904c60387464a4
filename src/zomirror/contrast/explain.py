"""explain() and explain_many(): contrastive explanations of any classifier that can be asked."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from typing import Any

import numpy as np

from zomirror.checks import positive_integer, seed_of
from zomirror.classifiers import Classifier, as_classifier, radius_hint
from zomirror.contrast.answer import answer
from zomirror.contrast.durable import ReplyLedger, Shelf, asked, configuration
from zomirror.contrast.engine import Interrupted, Search, run_many
from zomirror.contrast.explanation import Explanation
from zomirror.contrast.progress import Callback, Found, Progress
from zomirror.contrast.search import found
from zomirror.contrast.search import search as search_for
from zomirror.contrast.setting import Setting
from zomirror.contrast.wanted import Wanted
from zomirror.descent import Method
from zomirror.durable import PathLike, stored_seed
from zomirror.errors import ArgumentError, ArgumentTypeError, BudgetError, OracleError, ZomirrorError
from zomirror.oracle import Ledger, MemoryLedger
from zomirror.result import Status
from zomirror.runs.group import RunGroup
from zomirror.runs.interrupt import stop_on_signal


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
    max_sent: int | None = None,
    run_dir: PathLike | None = None,
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

    With a `run_dir` every query is in a journal there before it is sent and every answer after: a search that was
    killed goes on with the same call, to the same explanation bit for bit, and a finished one is not run again.
    The model is not stored, so it is up to you to bring the same one. Ctrl-C and SIGTERM end the search cleanly
    after the batch in flight (status INTERRUPTED). `max_sent` (default: the budget) caps the queries ever sent,
    those of killed processes included. It, the names and the callback may differ from the stored configuration.
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
    place, shelf = wanted.setting(x0), None if run_dir is None else Shelf(run_dir)
    seed = seed_of(stored_seed(run_dir) if run_dir is not None and rng is None else rng)
    [explained] = _explain(
        [place], as_classifier(model), wanted, [seed], lockstep=1, callback=callback, max_sent=max_sent, shelf=shelf
    )
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
    max_sent: int | None = None,
    run_dir: PathLike | None = None,
    **options: Any,
) -> list[Explanation]:
    """explain() for every input of X, several at a time in joint batches; one result each, in order.

    Input i gets the answer of explain(model, X[i], rng=seed) with the seed that its result names, whatever the
    `lockstep` (the model's scores of a row being the same in every batch). When the model fails on one input, its
    explanation has the status ERROR and the others go on. `progress` shows a bar; by default only on a terminal.
    `options` are those of explain().

    With a `run_dir` each input has a run of its own in there (000000, 000001, ...), as explain() would make it, and
    `max_sent` is a cap for each. The same call goes on where the last one was killed.
    """
    positive_integer("lockstep", lockstep)
    try:
        wanted = Wanted(**options)
    except TypeError as error:
        if isinstance(error, ArgumentTypeError):
            raise
        raise ArgumentTypeError(f"expected options of explain(): {error}") from None
    places = []
    for i, x0 in enumerate(_inputs(X)):
        try:
            places.append(wanted.setting(x0))
        except (ArgumentError, ArgumentTypeError) as error:
            raise type(error)(f"input {i}: {error}") from None
    seed, classifier = (
        seed_of(stored_seed(run_dir) if run_dir is not None and rng is None else rng),
        as_classifier(model),
    )
    children = np.random.SeedSequence(seed).spawn(len(places))
    seeds = [int(child.generate_state(1, np.uint64)[0]) for child in children]
    common = {"task": "explain_many", "members": len(places), "seed": seed, "asked": asked(wanted, classifier)}
    group = nullcontext() if run_dir is None else RunGroup.open(run_dir, common)
    with _bar(len(places), show=progress) as advance, group as opened:
        shelf = None if opened is None else Shelf(opened)
        explained = _explain(
            places, classifier, wanted, seeds, lockstep=lockstep, advance=advance, max_sent=max_sent, shelf=shelf
        )
        if opened is not None and shelf is not None and shelf.full == len(places):
            opened.finish({"members": len(places)})
    failures = [one for one in explained if isinstance(one, Failed)]
    if len(failures) == len(explained) > 0 and not any(isinstance(one.error, OracleError) for one in failures):
        raise failures[0].error  # an argument that fits none of the inputs, so there is nothing to lose
    return [one.result if isinstance(one, Failed) else one for one in explained]


def _inputs(X: Any) -> Iterator[object]:
    try:
        return iter(X)
    except TypeError:
        raise ArgumentTypeError(
            f"expected X to be a sequence of inputs, got {type(X).__name__}: use explain for one"
        ) from None


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
    max_sent: int | None = None,
    shelf: Shelf | None = None,
) -> list[Explanation | Failed]:
    """One explanation a place."""
    for place in places:
        wanted.refuse_misnamed(place)
    cap = wanted.budget if max_sent is None else positive_integer("max_sent", max_sent)
    searches: list[Search[Explanation | Failed]] = []
    ledgers: list[Ledger] = []
    under_way: list[Progress] = []
    for i, (place, seed) in enumerate(zip(places, seeds, strict=True)):
        radius = _radius(classifier, place)
        under_way.append(Progress(place, wanted.aim(seed, radius), callback))
        if shelf is None:
            ledgers.append(MemoryLedger(cap))
            searches.append(_guarded(under_way[i], wanted, ledgers[i]))
        else:
            settings, arrays = configuration(place, wanted, classifier, seed, radius, cap)
            ledgers.append(ledger := ReplyLedger())
            searches.append(_durable(under_way[i], wanted, ledger, shelf, i, settings, arrays))

    def unbegun(i: int) -> Explanation:
        return answer(under_way[i], _interrupted(under_way[i]), wanted, MemoryLedger())

    with nullcontext() if shelf is None else stop_on_signal() as signalled:
        return run_many(
            searches,
            classifier,
            ledgers,
            lockstep=lockstep,
            done=lambda *_: advance(),
            stop=lambda: bool(signalled),
            unbegun=unbegun,
        )


def _durable(
    progress: Progress,
    wanted: Wanted,
    ledger: ReplyLedger,
    shelf: Shelf,
    i: int,
    settings: dict[str, Any],
    arrays: dict[str, Any],
) -> Search[Explanation | Failed]:
    """The search in its run directory, which is open as long as it lasts."""
    with shelf.open(i, settings, arrays) as run:
        if (before := shelf.find(run, wanted)) is not None:
            return before
        ledger.attach(run)
        return (yield from _guarded(progress, wanted, ledger, lambda explanation: shelf.keep(run, explanation)))


def _guarded(
    progress: Progress, wanted: Wanted, ledger: Ledger, ended_well: Callable[[Explanation], None] = lambda _: None
) -> Search[Explanation | Failed]:
    """The search, which a failing model ends with what was found so far."""
    try:
        ended = yield from search_for(progress)
    except Interrupted:
        return answer(progress, _interrupted(progress), wanted, ledger)
    except (BudgetError, OracleError, ArgumentError, ArgumentTypeError) as error:
        status = Status.MAX_SENT if isinstance(error, BudgetError) else Status.ERROR
        ended = found(progress, status, np.full_like(progress.scores, np.nan), str(error))
        partial = answer(progress, ended, wanted, ledger)
        if status is Status.MAX_SENT:
            return partial
        if isinstance(error, OracleError):
            error.result = partial
        return Failed(error, partial)
    explanation = answer(progress, ended, wanted, ledger)
    ended_well(explanation)
    return explanation


def _interrupted(progress: Progress) -> Found:
    return found(progress, Status.INTERRUPTED, np.full_like(progress.scores, np.nan))


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
