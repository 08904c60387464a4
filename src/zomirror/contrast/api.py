"""explain() and explain_many(): contrastive explanations of any classifier that can be asked."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from zomirror.contrast.explanation import Explanation
from zomirror.contrast.front import find_many, find_one
from zomirror.contrast.options import Wanted
from zomirror.contrast.progress import Callback
from zomirror.contrast.searches import EXPLAIN
from zomirror.engine.durable import PathLike
from zomirror.methods.descent import Method


def explain(
    model: Any,
    x0: object,
    *,
    kind: str = "PN",
    l1: float = 0.1,
    l2: float = 0.15,
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
    when nothing better has been found for a while. `search=n` tries n strengths of the penalty
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
    return find_one(EXPLAIN, model, x0, wanted, rng=rng, callback=callback, max_sent=max_sent, run_dir=run_dir)


def explain_many(
    model: Any,
    X: Iterable[object],
    *,
    rng: object = None,
    lockstep: int = 8,
    progress: bool | None = None,
    max_sent: int | None = None,
    run_dir: PathLike | None = None,
    workers: Any = None,
    **options: Any,
) -> list[Explanation]:
    """explain() for every input of X, several at a time in joint batches; one result each, in order.

    Input i gets the answer of explain(model, X[i], rng=seed) with the seed that its result names, whatever the
    `lockstep` (the model's scores of a row being the same in every batch). When the model fails on one input, its
    explanation has the status ERROR and the others go on. `progress` shows a bar; by default only on a terminal.
    `options` are those of explain().

    With a `run_dir` each input has a run of its own in there (000000, 000001, ...), as explain() would make it, and
    `max_sent` is a cap for each. The same call goes on where the last one was killed.

    `workers` explain one input at a time each: a number of processes, an executor, a Dask client or address (see
    Workers), whose number changes no bit of the result. The input of a worker that dies or is stopped goes to
    another one, which resumes its run; without a `run_dir` it ends with the status ERROR, because what it has
    spent is not known.
    """
    return find_many(
        EXPLAIN,
        model,
        X,
        options,
        rng=rng,
        lockstep=lockstep,
        progress=progress,
        max_sent=max_sent,
        run_dir=run_dir,
        workers=workers,
    )
