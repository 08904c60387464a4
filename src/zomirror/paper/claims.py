"""The claims of the paper, tested on the measured curves by ratios of mean losses with 95 % intervals."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from enum import Enum

import numpy as np

from zomirror.paper.settings import ADAPTIVE, ALGORITHMS, TUNED, Algorithm
from zomirror.paper.summary import Floats, Group

EARLY = 50
"""Iterations that count as early."""
CLOSE = 1.1
"""Two means match up to this ratio."""
RESAMPLES = 2_000


class Verdict(Enum):
    """Whether a claim was reproduced; the value is the text on the page."""

    HOLDS = "reproduced"
    PARTLY = "reproduced in part"
    FAILS = "not reproduced"
    UNKNOWN = "not measured"


@dataclass(frozen=True, slots=True)
class Ratio:
    """A ratio of two means over the same images, with a 95 % bootstrap interval."""

    value: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.value:.3g} [{self.low:.3g}, {self.high:.3g}]"


def ratio(above: Floats, below: Floats) -> Ratio:
    """mean(above) / mean(below); the bootstrap resamples images, so both means see the same ones."""
    n = len(above)
    drawn = np.random.default_rng(0).integers(0, n, size=(RESAMPLES, n))
    many = above[drawn].mean(axis=1) / below[drawn].mean(axis=1)
    low, high = np.quantile(many, [0.025, 0.975])
    return Ratio(float(above.mean() / below.mean()), float(low), float(high))


@dataclass(frozen=True, slots=True)
class Finding:
    """What was measured of a claim in one group of runs, and whether the claim holds there."""

    where: str
    measured: str
    holds: bool


@dataclass(frozen=True, slots=True)
class Claim:
    """A sentence of the paper and what was measured."""

    number: int
    text: str
    findings: tuple[Finding, ...]

    @property
    def verdict(self) -> Verdict:
        """The verdict of all findings together."""
        if not self.findings:
            return Verdict.UNKNOWN
        held = [finding.holds for finding in self.findings]
        return Verdict.HOLDS if all(held) else Verdict.PARTLY if any(held) else Verdict.FAILS


Groups = Mapping[tuple[str, str], Group]
"""Groups of runs by data set and kind."""


def claims(groups: Iterable[Group]) -> list[Claim]:
    """The six claims, tested on groups of one set of settings."""
    complete = {(one.data, one.kind): one for one in groups if _complete(one)}
    made: list[tuple[str, Callable[[Groups], Iterable[Finding]]]] = [
        ("The adaptive step matches the best tuned step of ZO-ExpMD.", _adaptive_matches),
        ("Both are ahead of ZO-PSGD in the first 50 iterations.", _ahead_early),
        ("PN on MNIST: both end with a lower loss than ZO-PSGD.", _final_pn),
        ("PP on MNIST: ZO-PSGD is close to or better than ZO-ExpMD, but worse than the adaptive method.", _final_pp),
        ("The advantage over ZO-PSGD is larger on CIFAR-10 than on MNIST.", _larger_on_cifar),
        ("The step size matters to ZO-ExpMD and to ZO-PSGD.", _step_matters),
    ]
    return [Claim(i, text, tuple(measure(complete))) for i, (text, measure) in enumerate(made, 1)]


def _complete(group: Group) -> bool:
    """Whether the adaptive method and every step size were run on at least one common image."""
    return bool(group.images(one.name for one in ALGORITHMS if one.family in (ADAPTIVE.family, *TUNED)))


def _ratio(group: Group, above: Algorithm, below: Algorithm, step: int) -> Ratio:
    """The ratio of the normalised losses of two algorithms after a step."""
    at = group.at(step)
    a, b = group.curves([above, below])
    return ratio(a.rows[:, at], b.rows[:, at])


def _adaptive_matches(groups: Groups) -> Iterable[Finding]:
    for group in groups.values():
        last = group.iterations
        best = group.best("expmd")
        if best is not None:
            early, final = (_ratio(group, ADAPTIVE, best, step) for step in (min(EARLY, last), last))
            text = f"adaptive / ZO-ExpMD (η = {best.eta:g}): {early} at t = {min(EARLY, last)}, {final} at t = {last}"
            yield Finding(group.title, text, final.value <= CLOSE)


def _ahead_early(groups: Groups) -> Iterable[Finding]:
    for group in groups.values():
        early = min(EARLY, group.iterations)
        ours = group.best("expmd")
        for step in sorted({early // 2, early} & set(group.steps)):
            # PSGD with the step size that is best at the end, as in the figures, and with the best at this step.
            rivals = [one for one in (group.best("psgd"), group.best("psgd", step)) if one is not None]
            for theirs in dict.fromkeys(rivals):
                if ours is None:
                    continue
                ada, fixed = (_ratio(group, one, theirs, step) for one in (ADAPTIVE, ours))
                text = f"t = {step}: adaptive / ZO-PSGD (η = {theirs.eta:g}) {ada}, ZO-ExpMD / ZO-PSGD {fixed}"
                yield Finding(group.title, text, max(ada.value, fixed.value) < 1)


def _final_pn(groups: Groups) -> Iterable[Finding]:
    group = groups.get(("mnist", "PN"))
    if group is None:
        return
    ours, theirs = group.best("expmd"), group.best("psgd")
    if ours is not None and theirs is not None:
        last = group.iterations
        for name, one in (("adaptive", ADAPTIVE), ("ZO-ExpMD", ours)):
            found = _ratio(group, one, theirs, last)
            yield Finding(group.title, f"{name} / ZO-PSGD (η = {theirs.eta:g}) at t = {last}: {found}", found.value < 1)


def _final_pp(groups: Groups) -> Iterable[Finding]:
    group = groups.get(("mnist", "PP"))
    if group is None:
        return
    fixed, theirs = group.best("expmd"), group.best("psgd")
    if fixed is not None and theirs is not None:
        last = group.iterations
        close, worse = (_ratio(group, theirs, one, last) for one in (fixed, ADAPTIVE))
        yield Finding(group.title, f"ZO-PSGD / ZO-ExpMD at t = {last}: {close}", close.value <= CLOSE)
        yield Finding(group.title, f"ZO-PSGD / adaptive at t = {last}: {worse}", worse.value > 1)


def _larger_on_cifar(groups: Groups) -> Iterable[Finding]:
    for kind in ("PN", "PP"):
        found = [
            _ratio(group, theirs, ADAPTIVE, group.iterations)
            for data in ("mnist", "cifar")
            if (group := groups.get((data, kind))) is not None and (theirs := group.best("psgd")) is not None
        ]
        if len(found) == 2:
            text = f"ZO-PSGD / adaptive at the end: {found[0]} on MNIST, {found[1]} on CIFAR-10"
            yield Finding(kind, text, found[1].value > found[0].value)


def _step_matters(groups: Groups) -> Iterable[Finding]:
    for group in groups.values():
        for family in TUNED:
            curves = group.curves([one for one in ALGORITHMS if one.family == family])
            finals = {curve.algorithm.eta: float(curve.mean[-1]) for curve in curves}
            low, high = min(finals.values()), max(finals.values())
            best = min(finals, key=lambda eta: finals[eta])
            text = f"{curves[0].algorithm.title.split(',')[0]}: from {low:.3g} (η = {best:g}) to {high:.3g}"
            yield Finding(group.title, text, high / low > 2)
