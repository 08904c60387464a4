"""Search an image for the cheapest point beyond the decision boundary, with few queries.

1. From several origins, move each cell of a grid by PROBE and estimate the slopes of all scores (smooth_slopes.py).
2. Solve the linear model exactly: the least penalty beyond the boundary, for each of the nearest rival classes of a PN
   or all rivals of a PP jointly. Query the solutions, learn from what they changed, solve again: each rival's best
   point begins a chain.
3. Rounds: query the features in use and the most promising others singly around a chain's point, then solve and query
   within trust regions as in step 2. The next round goes to the chain that may still become the best.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from zomirror.contrast.candidate import Candidate, Goal
from zomirror.contrast.search.coarse_to_fine import Grid
from zomirror.contrast.search.local_refinement import Pull, along, bounded, steps_within
from zomirror.contrast.search.smooth_slopes import Neighbours
from zomirror.features.vector import VectorPlace
from zomirror.numerics.arrays import Array, Indices
from zomirror.numerics.elastic_point import least_points
from zomirror.numerics.linear import inner

Vector = NDArray[np.float64]
Asking = Generator[list[Array], Vector, Candidate | None]
"""Yields points, is sent their scores (n, classes), returns the best."""
Batch = tuple[list[Candidate], Vector]
"""Points that were queried, and their scores."""

PROBE, LEAST_PROBE, PROBE_FACTOR = 0.3, 0.05, 0.7
"""The step along a cell or a feature in units of its range, the least one, and its factor after a failed round. Steps
of 0.05 from the beginning do not see what a full change of a pixel does."""
CELLS = 64
"""Cells of a channel that are probed, at most."""
CELL_SHARE = 0.25
"""Probing the cells of one origin may use 25 % of the queries; cells are larger otherwise."""
NOISE, SECANT_NOISE = 0.1, 0.1
"""Variance of a probe and of the change along a solution, in units of the prior variance times the squared step."""
RIVALS, NEXT_RIVALS, FACETS = 6, 2, 8
"""Rival classes that a PN tries from an origin, and in each round; rivals that a PP keeps below its class."""
FIRST_AIMS, AIMS = 6, 6
"""How often the linear models are solved and their solutions queried: from an origin, and in each round."""
RADII = (0.5, 0.15)
"""Trust regions of a round, as fractions of the radius of the chain, which begins with the whole range of a feature."""
CORRECTION = 1.1
"""A model that was wrong by m is corrected by 1.1 m where the point is not yet beyond the boundary, else by m / 1.1."""
PROMISING, IN_USE = 40, 60
"""Features that a round queries singly: the most promising ones besides those in use, and of those in use at most."""
GAIN = 0.004
"""A round that lowers F by less than 0.4 % has failed."""
SHRINKING, LAST_RADIUS = 0.3, 0.03
"""Factor of the radius after a failed round, and the radius below which a chain has ended."""
HOPE = (0.7, 0.9, 0.95, 1.0)
"""The part of its F that a chain may end with after 0, 1, 2 and more rounds: the most hopeful one goes on."""
LEVELS = 8
"""Halvings for the best margin between the least valid one and -kappa."""
ORIGINS_PN = (0.0, 0.25, 0.5, 1.0)
"""Origins of a PN, as fractions of the way from x0 to the centre of the decision set."""
ORIGINS_PP = (0.0, 1.0, 0.5)
"""Origins of a PP, as fractions of the smallest valid multiple of x0."""
ORIGIN_SHARE = 0.15
"""Another origin is tried while at most 15 % of the queries are used."""
MULTIPLES = (0.125, 0.25, 0.375, 0.5, 0.625, 0.75, 0.875)
"""Multiples of x0 that are tried."""
LARGEST = 20_000
"""Larger images are not searched in this way: the observations of their cells take too much memory."""


@dataclass(eq=False)
class Chain:
    """A point of the search with its scores and the slopes there, improved round by round."""

    best: Candidate
    scores: Vector
    slopes: Vector
    radius: float = 1.0
    probe: float = PROBE
    rounds: int = 0
    w: Vector = field(init=False)

    def __post_init__(self) -> None:
        self.w = self.best.w.astype(np.float64)

    @property
    def ended(self) -> bool:
        """Whether no further round is worth its queries."""
        return self.radius < LAST_RADIUS

    @property
    def hope(self) -> tuple[bool, float]:
        """What the chain may become; the least is the most hopeful."""
        if not self.best.valid:
            return True, float(np.nan_to_num(self.best.margin, nan=np.inf))
        return False, self.best.fun * HOPE[min(self.rounds, len(HOPE) - 1)]

    def move(self, best: Candidate, scores: Vector) -> None:
        """Go on from another point with the same slopes."""
        self.best, self.scores, self.w = best, scores, best.w.astype(np.float64)

    def failed(self) -> None:
        """Look closer from now on."""
        self.radius *= SHRINKING
        self.probe = max(LEAST_PROBE, PROBE_FACTOR * self.probe)


class BoundarySearch:
    """The search, for at most `allowed` queries while nothing is valid, and at most `most` in all."""

    def __init__(self, place: VectorPlace, goal: Goal, pull: Pull, allowed: int, most: int) -> None:
        self.place, self.goal, self.pull, self._allowed, self._most = place, goal, pull, allowed, most
        self._used = 0
        self.best: Candidate | None = None
        sides = (np.broadcast_to(side, place.start.shape) for side in (place.box.lower, place.box.upper))
        self._lower, self._upper = (side.astype(np.float64) for side in sides)
        self._free = np.flatnonzero(self._lower < self._upper)
        self._grid = self._cells()
        self._near = Neighbours.of(place.x0.shape, self._grid.side)
        self._sign = 1.0 if pull.kept else -1.0

    @property
    def left(self) -> int:
        """Queries left."""
        return (self._most if self.best is not None and self.best.valid else self._allowed) - self._used

    def _cells(self) -> Grid:
        """The smallest cells that can be afforded."""
        shape, free = self.place.x0.shape, self._free
        side = 1
        while side < max(shape):
            grid = Grid(shape, side)
            if grid.count <= CELLS * grid.channels and np.unique(grid.cell_of[free]).size <= CELL_SHARE * self._most:
                break
            side += 1
        return Grid(shape, side)

    def run(self) -> Asking:
        """The best point found."""
        chains: list[Chain] = []
        for i, origin in enumerate((yield from self._origins())):
            if i == 0 or self._used <= ORIGIN_SHARE * self._most:
                chains += yield from self._begun(origin)
        while self.left > 0 and (alive := [chain for chain in chains if not chain.ended]):
            chain = min(alive, key=lambda chain: chain.hope)
            yield from self._round(chain)
            support = chain.w != 0
            for other in chains:
                same = other is not chain and np.array_equal(other.w != 0, support)
                if same and not chain.best.better_than(other.best):
                    chain.radius = 0.0  # it has arrived where another chain is
        return self.best

    def _origins(self) -> Generator[list[Array], Vector, Sequence[Array]]:
        start, one = self.place.start, self.place.start.dtype.type
        if self.place.kind == "PN":
            parts: Sequence[float] = ORIGINS_PN
        else:
            seen, _ = yield from self._ask([self.place.box.project(start * one(part)) for part in MULTIPLES])
            valid = [part for part, point in zip(MULTIPLES, seen, strict=False) if point.valid]
            parts = [min(valid, default=1.0) * part for part in ORIGINS_PP]
        return [self.place.box.project(start * one(part)) for part in parts]

    def _begun(self, origin: Array) -> Generator[list[Array], Vector, list[Chain]]:
        """Chains for the rivals, begun with the solutions of the linear models around the origin."""
        seen, scores = yield from self._ask([origin])
        if not seen or not np.isfinite(scores).all():
            return []
        chain = Chain(seen[0], scores[0], np.zeros((scores.shape[1], origin.size)))
        steps = self._steps(chain.w, PROBE)
        cell_of = self._grid.cell_of
        cells = np.unique(cell_of[steps != 0])
        moves = np.where(cell_of == cells[:, None], steps, 0.0)
        seen, reply = yield from self._ask(list((chain.w + moves).astype(origin.dtype)))
        if seen:
            chain.slopes = self._near.learn_moves(chain.slopes, moves[: len(seen)], reply - chain.scores, NOISE)
        found = yield from self._solved(chain, RIVALS, (1.0,), FIRST_AIMS, stay=True)
        return [Chain(best, row, chain.slopes.copy()) for best, row in found if np.isfinite(row).all()]

    def _round(self, chain: Chain) -> Generator[list[Array], Vector, None]:
        features = self._promising(chain)
        steps = self._steps(chain.w, chain.probe)[features]
        seen, reply = yield from self._ask(along(chain.best.w, features, steps))
        count = len(seen)
        if count:
            change = reply - chain.scores
            chain.slopes = self._near.learn_features(chain.slopes, features[:count], steps[:count], change, NOISE)
        before = chain.best
        yield from self._solved(chain, NEXT_RIVALS, RADII, AIMS)
        chain.rounds += 1
        valid = before.valid and chain.best.valid
        old, new = (before.fun, chain.best.fun) if valid else (before.margin, chain.best.margin)
        if chain.best is before or (before.valid == chain.best.valid and new > old - GAIN * abs(old)):
            chain.failed()

    def _solved(
        self, chain: Chain, rivals: int, radii: Sequence[float], aims: int, *, stay: bool = False
    ) -> Generator[list[Array], Vector, list[tuple[Candidate, Vector]]]:
        """Solve and query the problems of all rivals and radii, `aims` times; the best point for each rival.

        Unless it has to `stay`, the chain moves to every better point. Each solution corrects the slopes, and what they
        still predict wrongly at the last solution of a problem is corrected in its margin.
        """
        found: dict[int, tuple[Candidate, Vector]] = {}
        wrong = np.zeros(0)
        for _ in range(aims):
            groups = [group for group in self._rivals(chain.scores, rivals) for _ in radii]
            if not wrong.size:
                wrong = np.zeros(len(groups))
            points = self._solutions(chain, groups, np.tile(radii, len(groups) // len(radii)) * chain.radius, wrong)
            seen, reply = yield from self._ask(points)
            count = len(seen)
            if not count:
                break
            for group, candidate, row in zip(groups, seen, reply, strict=False):
                if group[0] not in found or candidate.better_than(found[group[0]][0]):
                    found[group[0]] = candidate, row
            moves = np.array([candidate.w for candidate in seen], np.float64) - chain.w
            moved = np.abs(moves).max(axis=1) > 0
            if moved.any():
                change = (reply - chain.scores)[moved]
                chain.slopes = self._near.learn_moves(chain.slopes, moves[moved], change, SECANT_NOISE)
            best = min(
                range(count), key=lambda i: (not seen[i].valid, seen[i].fun if seen[i].valid else seen[i].margin)
            )
            if not stay and seen[best].better_than(chain.best):
                chain.move(seen[best], reply[best])
                wrong[:] = 0.0
                continue
            for i, (candidate, move) in enumerate(zip(seen, moves, strict=True)):
                slopes, gaps = self._model(chain, groups[i])
                missed = candidate.margin - float((gaps - inner(slopes, move[None, self._free])[:, 0]).max())
                short = candidate.margin > -self.goal.kappa
                wrong[i] = np.nan_to_num(missed) * (CORRECTION if short else 1 / CORRECTION)
        return list(found.values())

    def _model(self, chain: Chain, rivals: list[int]) -> tuple[Vector, Vector]:
        """Slopes (k, free) and values (k,) such that margin = max_j(value_j - <slope_j, step>)."""
        own = self.pull.own
        slopes = -self._sign * (chain.slopes[rivals] - chain.slopes[own])[:, self._free]
        return slopes, self._sign * (chain.scores[rivals] - chain.scores[own])

    def _solutions(self, chain: Chain, groups: list[list[int]], radii: Vector, wrong: Vector) -> list[Array]:
        """The cheapest points beyond the boundary of the linear models, within the radii."""
        models = [self._model(chain, group) for group in groups]
        slopes, gaps = (np.stack(parts) for parts in zip(*models, strict=True))
        n, k, d = slopes.shape
        at = chain.w[self._free]
        lower, upper = (np.broadcast_to(side[self._free], (n, d)) for side in (self._lower, self._upper))
        box = np.maximum(lower, at - radii[:, None]), np.minimum(upper, at + radii[:, None])
        # Aim strictly beyond the boundary, by more than the rounding error of the scores.
        strictly = 1e-6 * (1.0 + float(np.abs(chain.scores).max()))
        needed = gaps + inner(slopes.reshape(n * k, d), at[None]).reshape(n, k) + wrong[:, None] + strictly
        points = np.repeat(chain.w[None], n, axis=0)
        points[:, self._free] = cheapest(slopes, needed, *box, self.goal)
        return [self.place.box.project(point) for point in points.astype(self.place.start.dtype)]

    def _rivals(self, scores: Vector, count: int) -> list[list[int]]:
        """The rival classes of each problem: all in one for a class that must win, else one at a time."""
        order = [int(i) for i in np.argsort(-scores, kind="stable") if i != self.pull.own]
        return [order[:FACETS]] if self.pull.kept else [[rival] for rival in order[:count]]

    def _promising(self, chain: Chain) -> Indices:
        """The largest features in use and those that change the margin most for the nearest rivals."""
        rivals = self._rivals(chain.scores, 1)[0][:3]
        slopes, _ = self._model(chain, rivals)
        at, lower, upper = (side[self._free] for side in (chain.w, self._lower, self._upper))
        pull = np.maximum(np.where(upper > at, slopes, 0.0), np.where(lower < at, -slopes, 0.0)).max(axis=0)
        used = np.flatnonzero(at)
        used = used[np.argsort(-np.abs(at[used]), kind="stable")[:IN_USE]]
        pull[at != 0] = 0.0
        others = np.argsort(-pull, kind="stable")[:PROMISING]
        chosen: Indices = self._free[np.sort(np.concatenate([used, others[pull[others] > 0]]))]
        return chosen

    def _steps(self, w: Vector, size: float) -> Vector:
        steps = steps_within(w, self._lower, self._upper, size=size)
        steps[self._lower >= self._upper] = 0.0
        return steps

    def _ask(self, points: list[Array]) -> Generator[list[Array], Vector, Batch]:
        """Query the points that the queries left allow."""
        points = points[: max(0, self.left)]
        if not points:
            return [], np.empty((0, 0))
        self._used += len(points)
        reply = bounded((yield points))
        margins = self.pull.margins(reply)
        seen = [self.goal.candidate(w, float(margin)) for w, margin in zip(points, margins, strict=True)]
        for candidate in seen:
            if candidate.better_than(self.best):
                self.best = candidate
        return seen, reply


def cheapest(slopes: Vector, needed: Vector, lower: Vector, upper: Vector, goal: Goal) -> Vector:
    """The points (n, d) of least F in linear models: margin = max_j(needed_j - <slope_j, point>), valid if possible.

    The margin is worth its value down to -kappa, but not below. A point whose multipliers sum to more than 1 pays more
    for its margin than that is worth; it may stop earlier, as long as it is valid.
    """
    l1, l2 = goal.penalty.l1, goal.penalty.l2
    points, multipliers = least_points(slopes, needed + goal.kappa, lower, upper, l1, l2)
    dear = np.flatnonzero(multipliers.sum(axis=1) > 1)
    if goal.kappa <= goal.floor or not dear.size:
        return points
    least, most = np.full(dear.size, goal.floor), np.full(dear.size, goal.kappa)
    for _ in range(LEVELS):
        level = (least + most) / 2
        box = lower[dear], upper[dear]
        _, multipliers = least_points(slopes[dear], needed[dear] + level[:, None], *box, l1, l2)
        too_dear = multipliers.sum(axis=1) > 1
        least, most = np.where(too_dear, least, level), np.where(too_dear, level, most)
    points[dear], _ = least_points(slopes[dear], needed[dear] + least[:, None], *box, l1, l2)
    return points
