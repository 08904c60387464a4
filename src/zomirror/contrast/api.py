"""explain(), attack() and their forms for many inputs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import nullcontext, suppress
from dataclasses import replace
from typing import Any

import numpy as np

from zomirror.checks import flag, items, positive_integer, reading, seed_of, shown
from zomirror.classifiers import Classifier, LabelOnly
from zomirror.classifiers.torch import is_torch_module
from zomirror.contrast.candidate import Glimpse
from zomirror.contrast.explanation import Explanation
from zomirror.contrast.find import Failed, InputCase, Outcome, decided, find_spread, find_together, informed, is_final
from zomirror.contrast.meter import meter
from zomirror.contrast.options import ATTACK_FIXES, KNOWN, Options
from zomirror.contrast.progress import Callback
from zomirror.engine.durable import PathLike, stored_seed
from zomirror.engine.retry import Retry, attempts_of
from zomirror.errors import ArgumentError, ArgumentTypeError, OracleError, RunError
from zomirror.features.default import default_features
from zomirror.features.place import Features, Place
from zomirror.features.tabular.frames import is_frame, rows_of
from zomirror.features.vector import VectorPlace
from zomirror.methods.descent import Method
from zomirror.parallel import Workers
from zomirror.runs.folder import check_name, check_path
from zomirror.runs.group import RunGroup

UNSET: Any = object()
"""The default of keywords that are a short form of Vector: it was not given."""
RESERVED = frozenset(("config.json", "arrays.npz", "result.json", "result.npz", "command.json", "lock"))
"""Files of a group, which no run in it may be called."""
DOING = {"explain": "explaining", "attack": "attacking"}
"""What the progress bar says."""


def explain(
    model: Any,
    x0: object,
    *,
    kind: str = "PN",
    features: Features | None = None,
    l1: float = 0.1,
    l2: float | None = None,
    kappa: float | None = None,
    bounds: object = UNSET,
    budget: int | None = None,
    rng: object = 0,
    fewest: bool = False,
    answers: int = 1,
    plausible: object = None,
    plausibility: float = 1.0,
    loss: str = "hinge",
    method: Method | None = None,
    prior: object = None,
    label: int | str | None = None,
    target: int | str | None = None,
    baseline: object = UNSET,
    fixed: object = UNSET,
    signed: bool = UNSET,
    scale: object = UNSET,
    mean: object = UNSET,
    std: object = UNSET,
    search: int = 0,
    feature_names: object = UNSET,
    class_names: object = None,
    progress: bool | None = None,
    callback: Callback | None = None,
    max_sent: int | None = None,
    on_error: str | Retry = "raise",
    run_dir: PathLike | None = None,
) -> Any:
    """Find the few features that decide the model's class of x0.

    A pertinent negative (`kind="PN"`, a counterfactual) is a small, sparse change after which the class is another
    one; a pertinent positive ("PP") is a small, sparse part of x0 that alone keeps the class.

    Parameters
    ----------
    model : function, path, module or estimator
        Maps a batch (n, *shape) to scores (n, classes), best given as logits: a function, the path of an .onnx file, a
        torch module, a fitted classifier of scikit-learn, XGBoost, LightGBM or CatBoost, or what http_classifier() and
        command_classifier() return. With a Table it is given frames; a regressor goes through above() or between().
    x0 : array or row
        One input; for a Table a row of a frame, a dict, or a sequence in the order of the columns.
    kind : "PN" or "PP"
        What to look for.
    features : Vector or Table, optional
        What may change. `bounds`, `baseline`, `fixed`, `signed`, `scale`, `mean`, `std` and `feature_names` are a short
        form of Vector.
    l1, l2 : float
        Weights of |x|_1 and |x|_2^2 / 2, x in units of each feature's range: a larger l1 changes fewer features, a
        larger l2 changes them less. By default l2 is 0.15, and 0 for a Table.
    kappa : float, optional
        The margin by which the wanted class should win, in units of the scores. By default, for arrays one that
        survives rounding to 8 bits and a noise of 0.001 of each feature's range, and for a Table 1 % of the margin of
        x0; 0 for the paper's.
    bounds : pair, optional
        The least and the largest value of each feature; (0, 1) by default.
    budget : int
        The largest number of model queries, including the one that finds the class; by default 2,000 for
        an array, 10,000 for a Table, and 300 for the parts of an image, a text or a series. attack(): 10,000.
    rng : int, Generator or None
        The seed; the explanation names the one that was used. None: the seed of the run in `run_dir`, or a new one.
    fewest : bool
        For a Table: change as few columns as possible first, and as little as possible second. By default the weighted
        sizes of the changes decide.
    answers : int
        For a Table: return a list of up to this many explanations that differ in the columns they change, best first,
        within one budget. One that contains the columns of a better one changes one of these by at most half as much.
    plausible : True, rows or function, optional
        For a PN of a Table: add l1 * plausibility * cost to the objective. The cost is the distance to the nearest row
        to which the model gives the new class, among the reference rows (True) or the given ones; or what a function of
        a batch returns, one number >= 0 for each row. The function gets the frames that the model gets, and its calls
        are not queries.
    plausibility : float
        The weight of that cost. With 0 the nearest answer wins, with 1 one between x0 and the nearest row of the other
        class, with more one that is closer to that row.
    loss : "hinge" or "softplus"
        The loss of the margin that is minimised.
    method : optional
        The method of the descent, from zm.methods; by default the recommended one.
    prior : array, function or model, optional
        A guess of the slopes of the scores, for arrays: slopes (classes, *shape), a function from an input to slopes,
        or a surrogate of the model (a torch module, a fitted estimator, the path of an .onnx file), which costs no
        queries. It is trusted as far as the first queries bear it out.
    label : int or str, optional
        Explain this class instead of the predicted one: its place in the scores, or its name.
    target : int or str, optional
        The class that a PN must reach.
    baseline : float or array, optional
        The value of an absent feature of a PP; 0 by default.
    fixed : mask or indices, optional
        Features that must not change.
    signed : bool
        Whether a PN may also lower features; by default it only raises them.
    scale : array, optional
        The unit in which a feature's change is penalised; by default its range.
    mean, std : float or array, optional
        x0 is normalised as (raw - mean) / std; the bounds are those of the raw values.
    search : int
        Try this many strengths of the penalty within the budget and return the sparsest valid explanation.
    feature_names, class_names : sequence of str, optional
        Names used by the explanation; by default the names of the classes that the model knows (`classes_`).
    progress : bool, optional
        Whether to show a progress bar; by default on a terminal, when the search takes longer than a second.
    callback : function, optional
        Called after each batch with a Glimpse (x, fun, best, nfev, nnz, and of the best answer so far perturbed and
        changes); ends the search by raising StopIteration.
    max_sent : int, optional
        The largest number of queries ever sent, including retries and those of killed processes; by default the
        budget.
    on_error : "raise" or Retry(n)
        What to do when the model raises: end with OracleError, or send the batch again up to n times.
    run_dir : path, optional
        A directory for a journal of every query. The same call then resumes a killed search, to the same explanation
        bit for bit, and returns a finished one without queries. The model is not stored. Ctrl-C and SIGTERM end the
        search after the batch in flight (status INTERRUPTED). `max_sent`, the names and the callback may differ from
        the stored call.

    Returns
    -------
    Explanation
        The best valid point seen. If there is none, `valid`, `status` and `message` say so, and the explanation holds
        the point with the least margin. The search ends early when it stalls. With answers > 1, a list of them.
    """
    given = {name: value for name, value in locals().items() if name in KNOWN["explain"] and value is not UNSET}
    found = _find_one("explain", model, x0, given, rng, progress, callback, max_sent, on_error, run_dir)
    return found if answers == 1 else _listed(found)


def attack(
    model: Any,
    x0: object,
    *,
    features: Features | None = None,
    l0: int | str | None = None,
    scores: str = "all",
    l1: float = 0.01,
    l2: float = 0.0,
    kappa: float | None = None,
    bounds: object = UNSET,
    budget: int | None = None,
    rng: object = 0,
    method: Method | None = None,
    prior: object = None,
    label: int | str | None = None,
    target: int | str | None = None,
    fixed: object = UNSET,
    scale: object = UNSET,
    mean: object = UNSET,
    std: object = UNSET,
    feature_names: object = UNSET,
    class_names: object = None,
    progress: bool | None = None,
    callback: Callback | None = None,
    max_sent: int | None = None,
    on_error: str | Retry = "raise",
    run_dir: PathLike | None = None,
) -> Explanation:
    """Find the nearest input inside the bounds that the model takes for another class than x0, or the sparsest one.

    By default the result is the adversarial input seen with the least l1 |x|_1 + (l2/2) |x|_2^2, where x is the change
    in units of each feature's range; `l0` counts changed pixels instead. The search of an image begins with random
    pixels at full contrast and goes on with linear models of the scores. If that finds nothing, or with a `method` of
    your own, it descends as explain() does. The result is an Explanation of kind PN: `perturbed` is the adversarial
    input and `contrast_label` its class.

    Parameters
    ----------
    model, x0
        As for explain().
    features : Vector or Table, optional
        What may change; a Vector with signed=True, of which `bounds`, `fixed`, `scale`, `mean`, `std` and
        `feature_names` are the short form.
    l0 : int or "least", optional
        The largest number of pixels that may change, all channels of a pixel together; or "least", for as few as
        possible first and the least penalty second. Of other inputs than images each feature is a pixel. Where x0 lies
        on the grid of 8 bits, every value of the result does too. The bounds must be finite.
    scores : "all" or "label"
        What the model tells. With "label" only the class with the largest score is used, as of a service that names a
        class and no score; a batch may then also be answered by (n,) numbers of classes, if `class_names` are given.
    l1, l2 : float
        Weights of the penalty: a larger l1 changes fewer features, a larger l2 changes them less.
    kappa : float, optional
        The margin by which the other class must win, in units of the scores; by default as for explain().
    target : int or str, optional
        The class to reach; by default any other one.
    bounds, budget, rng, method, prior, label, fixed, scale, mean, std
        As for explain().
    feature_names, class_names, progress, callback, max_sent, on_error, run_dir
        As for explain().

    Returns
    -------
    Explanation
        `valid` says whether another class wins at `perturbed`, by more than kappa.
    """
    given = {name: value for name, value in locals().items() if name in KNOWN["attack"] and value is not UNSET}
    return _find_one("attack", model, x0, given, rng, progress, callback, max_sent, on_error, run_dir)


def explain_many(
    model: Any,
    X: Iterable[object],
    *,
    rng: object = 0,
    lockstep: int = 8,
    progress: bool | None = None,
    callback: Callable[[int, Explanation], object] | None = None,
    max_sent: int | None = None,
    on_error: str | Retry = "raise",
    run_dir: PathLike | None = None,
    names: Sequence[str] | None = None,
    workers: Any = None,
    **options: Any,
) -> list[Any]:
    """explain() for every input of X, several at a time in joint batches; one result each, in order.

    Result i equals explain(model, X[i], rng=seed) with the seed that it names, for every `lockstep`, if the model's
    scores of a row do not depend on the rest of the batch. When the model fails on one input, its explanation has the
    status ERROR and the others continue.

    Parameters
    ----------
    model
        As for explain().
    X : iterable of inputs, or frame
        The inputs.
    rng : int, Generator, sequence of int or None
        The seed from which one for each input is derived, or the seeds themselves.
    lockstep : int
        The number of searches at a time; their rows are sent in joint batches.
    progress : bool, optional
        Whether to show a progress bar; by default only on a terminal.
    callback : function, optional
        Called with (i, explanation) as each search ends.
    max_sent : int, optional
        For each input, as for explain().
    on_error : "raise" or Retry(n)
        As for explain().
    run_dir : path, optional
        A directory in which each input has a run of its own, as explain() would make it. The same call resumes a
        killed one.
    names : sequence of str, optional
        The names of the runs in `run_dir`; by default 000000, 000001, and so on.
    workers : optional
        A number of processes, an executor, a Dask client or address (see Workers); each worker searches one input at a
        time. The result does not depend on their number. The input of a worker that dies or is stopped goes to another
        one, which resumes its run. Without a `run_dir` it ends with the status ERROR, because the queries that it used
        are not known.
    **options
        Those of explain().

    Returns
    -------
    list of Explanation
        With answers > 1, a list of lists.
    """
    found = _find_many(
        "explain", model, X, options, rng, lockstep, progress, callback, max_sent, on_error, run_dir, names, workers
    )
    return found if options.get("answers", 1) == 1 else [_listed(one) for one in found]


def attack_many(model: Any, X: Iterable[object], **options: Any) -> list[Explanation]:
    """attack() for every input of X, several at a time in joint batches; one result each, in order.

    Parameters
    ----------
    model, X
        As for explain_many().
    **options
        `rng`, `lockstep`, `progress`, `callback`, `max_sent`, `on_error`, `run_dir`, `names` and `workers` as for
        explain_many(), and the options of attack().

    Returns
    -------
    list of Explanation
    """
    how = {name: options.pop(name, default) for name, default in (explain_many.__kwdefaults__ or {}).items()}
    return _find_many("attack", model, X, options, **how)


def _listed(found: Explanation) -> list[Explanation]:
    """The answers of one search, best first."""
    return [replace(found, others=()), *found.others]


def _options(task: str, given: dict[str, Any]) -> Options:
    if task == "explain":
        return Options.of(task, given)
    given = {"l1": 0.01, "l2": 0.0} | given
    fixes: dict[str, Any] = dict(ATTACK_FIXES)
    if given.get("features") is not None:
        fixes = {name: value for name, value in fixes.items() if name not in ("signed", "baseline")}
        with reading("features", given["features"]):
            signed = bool(getattr(given["features"], "signed", True))
        if not signed:
            raise ArgumentError("expected features with signed=True: an attack may raise and lower every feature")
    return Options.of(task, given | fixes)


def _find_one(
    task: str,
    model: Any,
    x0: object,
    given: dict[str, Any],
    rng: object,
    progress: object,
    callback: Callback | None,
    max_sent: int | None,
    on_error: str | Retry,
    run_dir: PathLike | None,
) -> Explanation:
    """Explain or attack one input."""
    if callback is not None and not callable(callback):
        raise ArgumentTypeError(f"expected callback to be a function of one argument, got {shown(callback)}")
    options = _options(task, given | default_features(x0, given, task))
    cap = None if max_sent is None else positive_integer("max_sent", max_sent)
    place, attempts, seed = options.features.place(x0, options.kind), attempts_of(on_error), _seed(rng, run_dir)
    where = None if run_dir is None else check_path(run_dir)
    classifier = _classifier(options, model)
    options = options.named(getattr(classifier, "class_names", None))
    _check_prior(options, place)
    case = InputCase(informed(place, classifier), options, seed, classifier, attempts, cap, where)
    with meter(DOING[task], options.budget, show=None if progress is None else flag("progress", progress)) as told:

        def watched(glimpse: Glimpse) -> None:
            told.update(glimpse.nfev, glimpse.fun, glimpse.best)
            if callback is not None:
                with told.hidden():
                    callback(glimpse)

        found = case(callback if told.live is told.later is None else watched)
    if isinstance(found, Failed):
        raise found.error
    return found


def _find_many(
    task: str,
    model: Any,
    X: Iterable[object],
    given: dict[str, Any],
    rng: object,
    lockstep: int,
    progress: object,
    callback: Callable[[int, Explanation], object] | None,
    max_sent: int | None,
    on_error: str | Retry,
    run_dir: PathLike | None,
    names: Sequence[str] | None,
    workers: Any,
) -> list[Explanation]:
    """Explain or attack each input of X."""
    positive_integer("lockstep", lockstep)
    show = None if progress is None else flag("progress", progress)
    if unknown := sorted(set(given) - KNOWN[task]):
        known = ", ".join(sorted(KNOWN[task]))
        raise ArgumentTypeError(f"expected options of {task}_many() among {known}, got {', '.join(unknown)}")
    if callback is not None and not callable(callback):
        raise ArgumentTypeError(f"expected callback to be a function of (i, explanation), got {shown(callback)}")
    inputs = list(_inputs(X, task))
    options = _options(task, given | (default_features(inputs[0], given, task) if inputs else {}))
    cap = None if max_sent is None else positive_integer("max_sent", max_sent)
    places = []
    for i, x0 in enumerate(inputs):
        try:
            places.append(options.features.place(x0, options.kind))
        except (ArgumentError, ArgumentTypeError) as error:
            raise type(error)(f"input {i}: {error}") from None
    seed, seeds = _seeds(rng, run_dir, len(places))
    classifier, attempts = _classifier(options, model), attempts_of(on_error)
    options = options.named(getattr(classifier, "class_names", None))
    places = [informed(place, classifier) for place in places]
    for place in places[:1]:
        _check_prior(options, place)
    plan = None if workers is None else Workers.of(workers)
    folder = None if run_dir is None else check_path(run_dir)
    titles = (
        [f"{i:06}" for i in range(len(places))]
        if names is None
        else [check_name(name) for name in items("names", names)]
    )
    if not len(titles) == len(set(titles)) == len(places):
        raise ArgumentError(f"expected {len(places)} different names, got {len(titles)}, {len(set(titles))} different")
    if taken := RESERVED.intersection(titles):
        raise ArgumentError(f"expected names other than the files of a run directory, got {', '.join(sorted(taken))}")
    cases = [
        InputCase(place, options, seed_i, classifier, attempts, cap, None if folder is None else folder / titles[i])
        for i, (place, seed_i) in enumerate(zip(places, seeds, strict=True))
    ]
    common = {"task": f"{task}_many", "members": len(cases), "seed": seed, "asked": decided(options, classifier)}
    group = nullcontext() if run_dir is None else RunGroup.open(run_dir, common)
    used = np.zeros(len(cases), np.int64)
    what = f"{DOING[task]} {len(cases)} input{'' if len(cases) == 1 else 's'}"
    with meter(what, options.budget * len(cases), show=show) as told, group as opened:

        def watch(i: int, glimpse: Glimpse) -> None:
            used[i] = glimpse.nfev
            told.update(int(used.sum()), glimpse.fun, glimpse.best)

        def done(i: int, outcome: Outcome) -> None:
            used[i] = options.budget  # for the bar, a finished search has used its whole budget
            found = outcome.result if isinstance(outcome, Failed) else outcome
            told.update(int(used.sum()), found.objective)
            if callback is not None:
                with told.hidden():
                    callback(i, found)

        if plan is None:
            outcomes = find_together(cases, lockstep=lockstep, done=done, watch=watch, group=opened)
        else:
            outcomes = find_spread(cases, plan, done=done, durable=run_dir is not None)
        if opened is not None and all(is_final(outcome) for outcome in outcomes):
            with suppress(RunError, OSError):  # it only marks the group as finished; the answers are worth more
                opened.finish({"members": len(cases)})
    failures = [one for one in outcomes if isinstance(one, Failed)]
    if len(failures) == len(outcomes) > 0 and not any(isinstance(one.error, OracleError) for one in failures):
        raise failures[0].error  # an argument that is wrong for every input, so no result is lost
    return [one.result if isinstance(one, Failed) else one for one in outcomes]


def _check_prior(options: Options, place: Place) -> None:
    if options.prior is not None and isinstance(place, VectorPlace):
        options.prior.check(place)


def _classifier(options: Options, model: Any) -> Classifier:
    """The model as a classifier of what the features make; of a model that tells only the class, of that."""
    if options.scores == "all":
        return options.features.classifier(model)
    names = options.class_names
    adapted = model if callable(model) and not is_torch_module(model) else options.features.classifier(model)
    return LabelOnly(adapted, None if names is None else len(names))


def _seed(rng: object, run_dir: PathLike | None) -> int:
    return seed_of(stored_seed(run_dir) if run_dir is not None and rng is None else rng)


def _seeds(rng: object, run_dir: PathLike | None, count: int) -> tuple[int | list[int], list[int]]:
    """What was given as `rng` (one seed or a list), and one seed for each input."""
    if isinstance(rng, list | tuple):
        seeds = [seed_of(one) for one in rng]
        if len(seeds) != count:
            raise ArgumentError(f"expected one seed for each of {count} inputs, got {len(seeds)}")
        return seeds, seeds
    seed = _seed(rng, run_dir)
    children = np.random.SeedSequence(seed).spawn(count)
    return seed, [int(child.generate_state(1, np.uint64)[0]) for child in children]


def _inputs(X: Any, task: str) -> Iterator[object]:
    with reading("X", X):
        if is_frame(X):
            yield from rows_of(X)
            return
        if not isinstance(X, Iterable) or getattr(X, "ndim", 1) == 0:
            raise ArgumentTypeError(
                f"expected X to be a sequence of inputs, got {type(X).__name__}: use {task} for one"
            )
        yield from X
