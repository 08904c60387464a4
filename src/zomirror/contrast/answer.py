"""Turn what a search has found into an Explanation."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from zomirror.contrast.candidate import Candidate
from zomirror.contrast.explanation import Explanation
from zomirror.contrast.options import Options
from zomirror.contrast.progress import Found, Progress
from zomirror.engine.ledger import Ledger
from zomirror.numerics.arrays import Array
from zomirror.result import Status


def answer(progress: Progress, ended: Found, ledger: Ledger) -> Explanation:
    """The best point of a search, in the units and the shape of its input, and the further answers."""
    first = _explanation(progress, ended, ended.best, ended.scores_after, ledger)
    others = tuple(_explanation(progress, ended, one, scores, ledger) for one, scores in ended.others)
    return replace(first, others=others)


def _explanation(
    progress: Progress, ended: Found, best: Candidate, scores_after: NDArray[np.float64], ledger: Ledger
) -> Explanation:
    place, options = progress.place, progress.options
    x, sizes = place.change(best.w), place.sizes(best.w)
    names = options.class_names
    known = scores_after.size > 0 and not np.isnan(scores_after).any()
    return Explanation(
        kind=place.kind,
        valid=best.valid,
        label=ended.label,
        contrast_label=int(np.argmax(scores_after)) if known else -1,
        x=x,
        x0=place.x0,
        perturbed=place.perturbed(best.w),
        scores_before=ended.scores_before,
        scores_after=scores_after,
        margin=best.margin,
        objective=best.fun,
        l1_norm=float(np.abs(sizes).sum(dtype=np.float64)),
        l2_norm=float(np.linalg.norm(sizes.astype(np.float64))),
        nnz=int(np.count_nonzero(sizes)),
        nfev=ledger.used,
        sent=ledger.sent,
        seed=progress.seed,
        status=ended.status if best.valid or ended.status in _AS_IT_IS else Status.NOT_FOUND,
        message=_message(ended, options, progress.goal.kappa),
        history=ended.history,
        scale=_compact(place.scale, x.shape),
        settings=options.record(),
        feature_names=place.names,
        space=place.space,
        listed=place.changes(best.w),
        labels=place.labels,
        class_names=names if names is not None and len(names) == ended.scores_before.size else None,
    )


_FAULTS = (Status.ERROR, Status.NONFINITE)
_AS_IT_IS = (*_FAULTS, Status.INTERRUPTED, Status.MAX_SENT)


def _compact(scale: Array | float, shape: tuple[int, ...]) -> Array:
    """The scale as one number if it is the same for all features."""
    flat = np.ravel(scale)
    return flat[:1].reshape(()) if (flat == flat[0]).all() else flat.reshape(shape)


def _message(ended: Found, options: Options, kappa: float) -> str:
    if ended.best.valid:
        return f"{ended.status.value}; {ended.note}" if ended.note else ended.status.value
    if ended.status in _FAULTS:
        return ended.note
    if ended.status in (Status.INTERRUPTED, Status.MAX_SENT):
        said = (
            f"{ended.status.value}; {ended.note}" if ended.status is Status.INTERRUPTED and ended.note else ended.note
        )
        return f"{said or ended.status.value}; nothing valid has been found yet"
    tries = ["a larger budget", "smaller l1 and l2", "another seed"]
    if options.kind == "PN":
        tries += [] if options.features.signed else ["signed=True"]
        tries += [] if options.target is None else ["another target"]
        remedy = f"the class did not change (best margin {ended.best.margin:.3g})"
        if ended.best.margin < 0 and isinstance(options.l0, int):
            tries.insert(0, "a larger l0")
            remedy = f"the class changed with more than l0 = {options.l0} pixels only"
        elif ended.best.margin < 0:
            tries.insert(0, "a smaller kappa")
            remedy = f"the other class won by {-ended.best.margin:.3g}, not by more than kappa = {kappa:.3g}"
    else:
        remedy = f"the class was not kept (best margin {ended.best.margin:.3g})"
    tries += [] if getattr(options.features, "fixed", None) is None else ["fewer fixed features"]
    what = "no adversarial input was found" if options.task == "attack" else Status.NOT_FOUND.value
    if not ended.steady:
        return f"{what}: {ended.note}; make the model deterministic (.eval() in torch) or try a larger budget"
    return f"{what}: {remedy}; try {', '.join(tries)}"
