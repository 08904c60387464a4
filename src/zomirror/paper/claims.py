"""The claims of the paper, each held against the curves: ratios of mean losses with their 95 % intervals."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from enum import Enum

import numpy as np

from zomirror.paper.settings import ADAPTIVE, ALGORITHMS, TUNED, Algorithm
from zomirror.paper.summary import Floats, Group

EARLY = 50
CLOSE = 1.1
"""A ratio of means up to here counts as a match."""
RESAMPLES = 2_000
NAMES = {"mnist": "MNIST", "cifar": "CIFAR-10"}


class Verdict(Enum):
    """Whether a claim was seen; the value is what a person reads."""

    HOLDS = "reproduced"
    PARTLY = "reproduced in part"
    FAILS = "not reproduced"
    UNKNOWN = "not measured"


@dataclass(frozen=True, slots=True)
class Ratio:
    """Mean of one thing over the mean of another on the same images, with a bootstrap interval of 95 %."""

    value: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.value:.3g} [{self.low:.3g}, {self.high:.3g}]"


def ratio(above: Floats, below: Floats) -> Ratio:
    """mean(above) / mean(below), the images resampled in pairs."""
    n = len(above)
    drawn = np.random.default_rng(0).integers(0, n, size=(RESAMPLES, n))
    many = above[drawn].mean(axis=1) / below[drawn].mean(axis=1)
    low, high = np.quantile(many, [0.025, 0.975])
    return Ratio(float(above.mean() / below.mean()), float(low), float(high))


@dataclass(frozen=True, slots=True)
class Finding:
    """A claim in one place: what was measured there, and whether it is what the paper says."""

    where: str
    measured: str
    holds: bool


@dataclass(frozen=True, slots=True)
class Claim:
    """A sentence of the paper beside what was measured."""

    number: int
    text: str
    findings: tuple[Finding, ...]

    @property
    def verdict(self) -> Verdict:
        """Of all findings together."""
        if not self.findings:
            return Verdict.UNKNOWN
        held = [finding.holds for finding in self.findings]
        return Verdict.HOLDS if all(held) else Verdict.PARTLY if any(held) else Verdict.FAILS


class _Place:
    """A group asked for numbers: normalised losses of its images after some steps."""

    def __init__(self, group: Group) -> None:
        self.group = group
        self.name = f"{NAMES[group.data]} {group.kind}"

    def best(self, family: str, step: int | None = None) -> Algorithm | None:
        return self.group.best(family, step)

    def ratio(self, above: Algorithm, below: Algorithm, step: int) -> Ratio:
        at = self.group.at(step)
        a, b = self.group.curves([above, below])
        return ratio(a.rows[:, at], b.rows[:, at])


def claims(groups: Iterable[Group]) -> list[Claim]:
    """The six claims, held against groups of one set of settings."""
    places = {(one.data, one.kind): _Place(one) for one in groups if _complete(one)}
    made: list[tuple[str, Callable[[Mapping[tuple[str, str], _Place]], Iterable[Finding]]]] = [
        ("The adaptive step matches the best tuned step of ZO-ExpMD.", _adaptive_matches),
        ("Both are ahead of ZO-PSGD in the first 50 iterations.", _ahead_early),
        ("PN on MNIST: both end with a lower loss than ZO-PSGD.", _final_pn),
        ("PP on MNIST: ZO-PSGD is close to or better than ZO-ExpMD, but worse than the adaptive method.", _final_pp),
        ("The advantage over ZO-PSGD is larger on CIFAR-10 than on MNIST.", _larger_on_cifar),
        ("The step size matters to ZO-ExpMD and to ZO-PSGD.", _step_matters),
    ]
    return [Claim(i, text, tuple(measure(places))) for i, (text, measure) in enumerate(made, 1)]


def _complete(group: Group) -> bool:
    """Whether there is an image on which the adaptive method and every step size were run."""
    return bool(group.images(one.name for one in ALGORITHMS if one.family in (ADAPTIVE.family, *TUNED)))


Places = Mapping[tuple[str, str], _Place]


def _adaptive_matches(places: Places) -> Iterable[Finding]:
    for place in places.values():
        last = place.group.iterations
        best = place.best("expmd")
        if best is not None:
            early, final = (place.ratio(ADAPTIVE, best, step) for step in (min(EARLY, last), last))
            text = f"adaptive / ZO-ExpMD (η = {best.eta:g}): {early} at t = {min(EARLY, last)}, {final} at t = {last}"
            yield Finding(place.name, text, final.value <= CLOSE)


def _ahead_early(places: Places) -> Iterable[Finding]:
    for place in places.values():
        early = min(EARLY, place.group.iterations)
        ours = place.best("expmd")
        for step in sorted({early // 2, early} & set(place.group.steps)):
            # PSGD as it is drawn, with the step size that ends best; then with whichever is best at that moment.
            rivals = [one for one in (place.best("psgd"), place.best("psgd", step)) if one is not None]
            for theirs in dict.fromkeys(rivals):
                if ours is None:
                    continue
                ada, fixed = (place.ratio(one, theirs, step) for one in (ADAPTIVE, ours))
                text = f"t = {step}: adaptive / ZO-PSGD (η = {theirs.eta:g}) {ada}, ZO-ExpMD / ZO-PSGD {fixed}"
                yield Finding(place.name, text, max(ada.value, fixed.value) < 1)


def _final_pn(places: Places) -> Iterable[Finding]:
    place = places.get(("mnist", "PN"))
    if place is None:
        return
    ours, theirs = place.best("expmd"), place.best("psgd")
    if ours is not None and theirs is not None:
        last = place.group.iterations
        for name, one in (("adaptive", ADAPTIVE), ("ZO-ExpMD", ours)):
            found = place.ratio(one, theirs, last)
            yield Finding(place.name, f"{name} / ZO-PSGD (η = {theirs.eta:g}) at t = {last}: {found}", found.value < 1)


def _final_pp(places: Places) -> Iterable[Finding]:
    place = places.get(("mnist", "PP"))
    if place is None:
        return
    fixed, theirs = place.best("expmd"), place.best("psgd")
    if fixed is not None and theirs is not None:
        last = place.group.iterations
        close, worse = (place.ratio(theirs, one, last) for one in (fixed, ADAPTIVE))
        yield Finding(place.name, f"ZO-PSGD / ZO-ExpMD at t = {last}: {close}", close.value <= CLOSE)
        yield Finding(place.name, f"ZO-PSGD / adaptive at t = {last}: {worse}", worse.value > 1)


def _larger_on_cifar(places: Places) -> Iterable[Finding]:
    for kind in ("PN", "PP"):
        found = [
            place.ratio(theirs, ADAPTIVE, place.group.iterations)
            for data in ("mnist", "cifar")
            if (place := places.get((data, kind))) is not None and (theirs := place.best("psgd")) is not None
        ]
        if len(found) == 2:
            text = f"ZO-PSGD / adaptive at the end: {found[0]} on MNIST, {found[1]} on CIFAR-10"
            yield Finding(kind, text, found[1].value > found[0].value)


def _step_matters(places: Places) -> Iterable[Finding]:
    for place in places.values():
        for family in TUNED:
            curves = place.group.curves([one for one in ALGORITHMS if one.family == family])
            finals = {curve.algorithm.eta: float(curve.mean[-1]) for curve in curves}
            low, high = min(finals.values()), max(finals.values())
            best = min(finals, key=lambda eta: finals[eta])
            text = f"{curves[0].algorithm.title.split(',')[0]}: from {low:.3g} (η = {best:g}) to {high:.3g}"
            yield Finding(place.name, text, high / low > 2)
