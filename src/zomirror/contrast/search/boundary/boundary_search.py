"""Search an image for the cheapest point beyond the decision boundary, with few queries in few batches.

1. From several origins together, move each cell of a grid by PROBE and estimate the slopes of all scores
   (smooth_slopes.py).
2. Solve the linear models exactly: the least penalty beyond the boundary, for each of the nearest rival classes of a PN
   or all rivals of a PP jointly. Query the solutions, learn from what they changed, solve again: each rival's best
   point begins a chain.
3. Rounds: query the features in use and the most promising others singly around a chain's point, then solve and query
   within trust regions as in step 2. The next round goes to the chains that may still become the best, several at once
   while many queries are left.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import suppress
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from zomirror.contrast.candidate import Candidate, Goal
from zomirror.contrast.search.boundary.chain import PROBE, SHRINKING, Chain, Seen
from zomirror.contrast.search.boundary.smooth_slopes import Neighbours
from zomirror.contrast.search.coarse_to_fine import Grid
from zomirror.contrast.search.local_refinement import Pull, bounded, steps_within
from zomirror.contrast.slope_guess import SlopeGuess
from zomirror.errors import ArgumentError
from zomirror.features.image_axes import image_axes
from zomirror.features.vector import VectorPlace
from zomirror.numerics.arrays import Array, Indices, row_sums
from zomirror.numerics.elastic_point import least_points
from zomirror.numerics.linear import inner

Vector = NDArray[np.float64]
Asking = Generator[Array, Vector, Candidate | None]
"""Yields points (n, d), is sent their scores (n, classes), returns the best."""

CELLS = 64
"""Cells of a channel that are probed, at most."""
CELL_SHARE = 0.25
"""Probing the cells of one origin may use 25 % of the queries; cells are larger otherwise."""
NOISE, SECANT_NOISE = 0.1, 0.1
"""Variance of a probe and of the change along a solution, in units of the prior variance times the squared step."""
RIVALS, NEXT_RIVALS, FACETS = 9, 2, 8
"""Rival classes that a PN tries from an origin, and in each round; rivals that a PP keeps below its class."""
FIRST_AIMS, AIMS = 6, 6
"""How often the linear models are solved and their solutions queried: from an origin, and in each round."""
RADII = (0.8, 0.3)
"""Trust regions of a round, as fractions of the radius of the chain, which begins with the whole range of a feature."""
WIDER = 3
"""When all chains have ended, the best one goes on with 3 times as many promising features."""
TRIES = 3
"""A round that gains nothing looks within smaller regions, 3 in all, before features are queried again."""
CORRECTION = 1.1
"""A model that was wrong by m is corrected by 1.1 m where the point is not yet beyond the boundary, else by m / 1.1."""
PROMISING, IN_USE = 20, 30
"""Features that a round queries singly: the most promising ones besides those in use, and of those in use at most."""
LEVELS = 8
"""Halvings for the best margin between the least valid one and -kappa."""
ORIGINS_PN = (0.0, 1.0, 0.5, 2.0)
"""Origins of a PN, as fractions of the way from x0 to the centre of the decision set."""
ORIGINS_PP = (0.0, 1.0, 0.5)
"""Origins of a PP, as fractions of the smallest valid multiple of x0."""
ORIGIN_SHARE = 0.25
"""The cells of all origins together may use 25 % of the queries."""
MULTIPLES = (0.125, 0.25, 0.375, 0.5, 0.625, 0.75, 0.875)
"""Multiples of x0 that are tried."""
ROUNDS_LEFT, TOGETHER = 3, 4
"""As many chains have a round at the same time as leave queries for 3 rounds each, and at most 4."""
LEAD_QUERIES, LEADS = 3_000, 2
"""A surrogate is searched with 3,000 queries of its own, and its 2 best points are the first origins."""
MOST_TRUST = 2.0
"""The slopes of a prior are multiplied by 2 at most."""
LARGEST = 20_000
"""Larger images are not searched in this way: the observations of their cells take too much memory."""


class BoundarySearch:
    """The search, for at most `allowed` queries while nothing is valid, and at most `most` in all."""

    def __init__(
        self,
        place: VectorPlace,
        goal: Goal,
        pull: Pull,
        allowed: int,
        most: int,
        *,
        prior: SlopeGuess | None = None,
        leads: Sequence[Array] = (),
    ) -> None:
        self._prior, self._leads = prior, leads
        self.chains: list[Chain] = []
        self.place, self.goal, self.pull, self._allowed, self._most = place, goal, pull, allowed, most
        self._used = 0
        self.best: Candidate | None = None
        sides = (np.broadcast_to(side, place.start.shape) for side in (place.box.lower, place.box.upper))
        self._lower, self._upper = (side.astype(np.float64) for side in sides)
        self._free = np.flatnonzero(self._lower < self._upper)
        self._cell_of, side, self._cells = self._grid()
        self._near = Neighbours.of(place.x0.shape, side)
        self._promised = PROMISING
        self._sign = 1.0 if pull.kept else -1.0

    @property
    def left(self) -> int:
        """Queries left."""
        return (self._most if self.best is not None and self.best.valid else self._allowed) - self._used

    def _grid(self) -> tuple[Indices, int, int]:
        """The smallest cells that can be afforded, their side and how many there are."""
        shape, side = self.place.x0.shape, 1
        if image_axes(shape) is None:
            count = max(1, min(CELLS, self.place.d, int(CELL_SHARE * self._most)))
            return np.arange(self.place.d) * count // self.place.d, 1, count
        while True:
            grid = Grid(shape, side)
            cell_of, channels = grid.cell_of, grid.channels
            count = int(np.unique(cell_of[self._free]).size)
            if (cell_of.max() + 1 <= CELLS * channels and count <= CELL_SHARE * self._most) or side >= max(shape):
                return cell_of, side, count
            side += 1

    def run(self) -> Asking:
        """The best point found."""
        self.chains = chains = yield from self._begun((yield from self._origins()))
        while self.left > 0 and chains:
            if not (alive := [chain for chain in chains if not chain.ended]):
                if self._promised >= self._free.size:
                    break
                self._promised *= WIDER
                alive = [min(chains, key=lambda chain: (not chain.valid, chain.fun if chain.valid else chain.margin))]
                alive[0].radius = SHRINKING
            each = self._promised + int(np.median([np.count_nonzero(chain.w) for chain in alive]))
            count = max(1, min(TOGETHER, self.left // (ROUNDS_LEFT * each)))
            chosen = sorted(alive, key=lambda chain: chain.hope)[:count]
            yield from self._round(chosen)
            for chain in chosen:
                support = chain.w != 0
                for other in chains:
                    same = other is not chain and not other.ended and np.array_equal(other.w != 0, support)
                    if same and not other.worse_than(chain.valid, chain.fun, chain.margin):
                        chain.radius = 0.0  # it has arrived where another chain is
        return self.best

    def _origins(self) -> Generator[Array, Vector, Array]:
        start, one = self.place.start, self.place.start.dtype.type
        if self.place.kind == "PN":
            parts: Sequence[float] = ORIGINS_PN
        else:
            seen = yield from self._ask(np.stack([start * one(part) for part in MULTIPLES]))
            valid = [part for part, good in zip(MULTIPLES, seen.valid, strict=False) if good]
            parts = [min(valid, default=1.0) * part for part in ORIGINS_PP]
        count = max(1, int(ORIGIN_SHARE * self._most / max(1, self._cells)))
        return np.stack([*self._leads, *(start * one(part) for part in parts)][:count])

    def _begun(self, origins: Array) -> Generator[Array, Vector, list[Chain]]:
        """Chains for the rivals, begun with the solutions of the linear models around the origins."""
        seen = yield from self._ask(origins)
        known = [i for i, row in enumerate(seen.scores) if np.isfinite(row).all()]
        chains = [Chain.at(seen, i, np.zeros((seen.scores.shape[1], self.place.d))) for i in known]
        moves = []
        for chain in chains:
            steps = self._steps(chain.w, PROBE)
            cells = np.unique(self._cell_of[steps != 0])
            moves.append(np.where(self._cell_of == cells[:, None], steps, 0.0))
        if not sum(map(len, moves)):
            return []
        points = np.concatenate([chain.w + move for chain, move in zip(chains, moves, strict=True)])
        seen = yield from self._ask(points.astype(origins.dtype))
        for chain, move, rows in zip(chains, moves, _parts(moves, len(seen.points)), strict=True):
            if rows.size:
                change = seen.scores[rows] - chain.scores
                self._guess(chain, move[: rows.size], change)
                chain.slopes, _ = self._near.learn_moves(chain.slopes, move[: rows.size], change, NOISE)
        return (yield from self._solved(chains, RIVALS, (1.0,), FIRST_AIMS, stay=True))

    def _guess(self, chain: Chain, moves: Vector, change: Vector) -> None:
        """Begin with the slopes that the prior says, times the factor that the moves bear out best."""
        if self._prior is None:
            return
        guess = self._prior.slopes(self.place, chain.w.astype(self.place.start.dtype))
        if guess.shape != chain.slopes.shape:
            raise ArgumentError(
                f"expected prior for {len(chain.scores)} classes, got {len(guess)}: as many as the model"
            )
        expected = inner(moves, guess).ravel()[None]
        size, fit = row_sums(expected)[0, 1], inner(expected, change.ravel()[None])[0, 0]
        trust = fit / size if size > 0 else 0.0
        chain.guess, chain.trust = guess, min(max(trust, 0.0), MOST_TRUST) if np.isfinite(trust) else 0.0
        chain.slopes = chain.trust * guess

    def _guess_again(self, chain: Chain) -> None:
        """Follow the prior to where the chain has moved."""
        if self._prior is None or chain.guess is None or chain.trust == 0 or not self._prior.local:
            return
        guess = self._prior.slopes(self.place, chain.w.astype(self.place.start.dtype))
        chain.slopes, chain.guess = chain.slopes + chain.trust * (guess - chain.guess), guess

    def _round(self, chains: list[Chain]) -> Generator[Array, Vector, None]:
        """One round of each chain."""
        for chain in chains:
            self._guess_again(chain)
        features = [self._promising(chain) for chain in chains]
        steps = [self._steps(chain.w, chain.probe)[chosen] for chain, chosen in zip(chains, features, strict=True)]
        counts = [chosen.size for chosen in features]
        points = np.repeat([chain.w for chain in chains], counts, axis=0)
        points[np.arange(len(points)), np.concatenate(features)] += np.concatenate(steps)
        if len(points):
            seen = yield from self._ask(points.astype(self.place.start.dtype))
            parts = _parts(features, len(seen.points))
            for chain, chosen, step, rows in zip(chains, features, steps, parts, strict=True):
                if rows.size:
                    known, change = chosen[: rows.size], seen.scores[rows] - chain.scores
                    chain.slopes = self._near.learn_features(chain.slopes, known, step[: rows.size], change, NOISE)
        for chain in chains:
            chain.rounds += 1
        trying, first = chains, {id(chain): chain.radius for chain in chains}
        for _ in range(TRIES):  # smaller radii cost less than another model
            before = [chain.state for chain in trying]
            yield from self._solved(trying, NEXT_RIVALS, RADII, AIMS)
            trying = [chain for chain, state in zip(trying, before, strict=True) if not chain.gained(state)]
            for chain in trying:
                chain.radius *= SHRINKING
            if not trying or self.left <= 0:
                break
        for chain in trying:
            chain.fail(first[id(chain)])

    def _solved(
        self, chains: list[Chain], rivals: int, radii: Sequence[float], aims: int, *, stay: bool = False
    ) -> Generator[Array, Vector, list[Chain]]:
        """Solve and query the problems of all chains, rivals and radii, `aims` times.

        Unless it has to `stay`, a chain moves to every better point; if it stays, a new chain begins at the best point
        for each of its rivals, and these are returned. Each solution corrects the slopes, and what they still predict
        wrongly at the last solution of a problem is corrected in its margin.
        """
        begun: dict[tuple[int, int], Chain] = {}
        groups = [self._groups(chain.scores, rivals) for chain in chains]
        each = len(groups[0]) * len(radii)
        wrong = np.zeros((len(chains), each))
        for _ in range(aims):
            points = self._solutions(chains, groups, radii, wrong)
            rows, asked = _distinct(points, [chain.w for chain in chains])
            if not asked.size or not self.left:
                break
            seen = yield from self._ask(points[asked])
            owners = asked[: len(seen.points)] // each
            moves = seen.points - np.array([chain.w for chain in chains])[owners]
            smoothed = self._near.smooth(moves)
            for i, chain in enumerate(chains):
                mine = np.flatnonzero(owners == i)
                if not mine.size:
                    continue
                change = seen.scores[mine] - chain.scores
                chain.slopes, predicted = self._near.learn_moves(
                    chain.slopes, moves[mine], change, SECANT_NOISE, smoothed[mine]
                )
                best = seen.best_of(mine)
                if stay:
                    for j, row in enumerate(rows[i * each : (i + 1) * each]):
                        if 0 <= row < len(seen.points) and np.isfinite(seen.scores[row]).all():
                            one = begun.setdefault(
                                (i, int(groups[i][j // len(radii)][0])), Chain.at(seen, row, chain.slopes)
                            )
                            if one.worse_than(bool(seen.valid[row]), float(seen.fun[row]), float(seen.margins[row])):
                                one.move(seen, row)
                elif chain.worse_than(bool(seen.valid[best]), float(seen.fun[best]), float(seen.margins[best])):
                    chain.move(seen, best)
                    groups[i], wrong[i] = self._groups(chain.scores, rivals), 0.0
                    continue
                rows_of = np.array(rows[i * each : (i + 1) * each])
                again = np.flatnonzero((rows_of >= 0) & (rows_of < len(seen.points)))
                asked_of, group = rows_of[again], groups[i][again // len(radii)]
                expected = (chain.scores + predicted)[asked_of - mine[0]]
                gaps = expected[np.arange(again.size)[:, None], group] - expected[:, [self.pull.own]]
                missed = seen.margins[asked_of] - (self._sign * gaps).max(axis=1)
                missed[np.isnan(missed)] = 0.0
                short = seen.margins[asked_of] > -self.goal.kappa
                wrong[i, again] = missed * np.where(short, CORRECTION, 1 / CORRECTION)
        for (i, _), one in begun.items():
            one.slopes = chains[i].slopes  # with what the last solutions showed; learning makes a new array
            one.guess, one.trust = chains[i].guess, chains[i].trust
        return list(begun.values())

    def _solutions(self, chains: list[Chain], groups: list[Indices], radii: Sequence[float], wrong: Vector) -> Array:
        """The cheapest points beyond the boundary of the linear models, within the radii: of each chain in turn."""
        n, (g, k), r, free = len(chains), groups[0].shape, len(radii), self._free
        slopes, needed = np.empty((n, g, r, k, free.size)), np.empty((n, g, r, k))
        for i, (chain, group) in enumerate(zip(chains, groups, strict=True)):
            own = self.pull.own
            near = chain.slopes[:, free]
            rows = -self._sign * (near[group] - near[own])
            slopes[i] = rows[:, None]
            at = inner(rows.reshape(g * k, -1), chain.w[None, free]).reshape(g, k)
            # Aim strictly beyond the boundary, by more than the rounding error of the scores.
            strictly = 1e-6 * (1.0 + float(np.abs(chain.scores).max()))
            gaps = self._sign * (chain.scores[group] - chain.scores[own])
            needed[i] = (gaps + at + strictly)[:, None]
            needed[i] += wrong[i].reshape(g, r, 1)
        at = np.array([chain.w for chain in chains])
        size = np.array([chain.radius for chain in chains])[:, None, None] * np.array(radii)[:, None]
        lower = np.maximum(self._lower[free], at[:, None, free] - size)
        upper = np.minimum(self._upper[free], at[:, None, free] + size)
        shape = (n, g, r, free.size)
        low, high = (np.broadcast_to(side[:, None], shape).reshape(-1, free.size) for side in (lower, upper))
        solved = cheapest(slopes.reshape(n * g * r, k, -1), needed.reshape(-1, k), low, high, self.goal)
        points = np.repeat(at, g * r, axis=0)
        points[:, free] = solved
        found: Array = self.place.box.project(points.astype(self.place.start.dtype))
        return found

    def _groups(self, scores: Vector, count: int) -> Indices:
        """The rival classes of each problem (problems, rivals): all in one for a class that must win, else one each."""
        ranked = np.argsort(-scores, kind="stable")
        order: Indices = ranked[ranked != self.pull.own]
        return order[None, :FACETS] if self.pull.kept else order[:count, None]

    def _promising(self, chain: Chain) -> Indices:
        """The largest features in use and those that change the margin most for the nearest rivals."""
        rivals = self._groups(chain.scores, 1)[0][:3]
        slopes = -self._sign * (chain.slopes[rivals] - chain.slopes[self.pull.own])[:, self._free]
        at, lower, upper = (side[self._free] for side in (chain.w, self._lower, self._upper))
        pull = np.maximum(np.where(upper > at, slopes, 0.0), np.where(lower < at, -slopes, 0.0)).max(axis=0)
        used = np.flatnonzero(at)
        used = used[np.argsort(-np.abs(at[used]), kind="stable")[:IN_USE]]
        pull[at != 0] = 0.0
        others = np.argsort(-pull, kind="stable")[: self._promised]
        chosen: Indices = self._free[np.sort(np.concatenate([used, others[pull[others] > 0]]))]
        return chosen

    def _steps(self, w: Vector, size: float) -> Vector:
        steps = steps_within(w, self._lower, self._upper, size=size)
        steps[self._lower >= self._upper] = 0.0
        return steps

    def _ask(self, points: Array) -> Generator[Array, Vector, Seen]:
        """Query the points that the queries left allow."""
        points = self.place.box.project(points[: max(0, self.left)])
        if not len(points):
            return Seen(points, np.empty((0, 0)), np.empty(0), np.empty(0), np.empty(0, bool))
        self._used += len(points)
        scores = bounded((yield points))
        margins = self.pull.margins(scores)
        seen = Seen(points, scores, margins, *self.goal.judge(points, margins))
        best = seen.best_of(np.arange(len(points)))
        candidate = Candidate(points[best], float(margins[best]), float(seen.fun[best]), bool(seen.valid[best]))
        if candidate.better_than(self.best):
            self.best = candidate
        return seen


def leads_of(prior: SlopeGuess | None, place: VectorPlace, goal: Goal, pull: Pull) -> list[Array]:
    """The best points of the same search on a surrogate, whose queries cost nothing, if the prior is one."""
    if prior is None or prior.surrogate is None:
        return []
    search = BoundarySearch(place, goal, pull, LEAD_QUERIES, LEAD_QUERIES)
    steps = search.run()
    with suppress(StopIteration):
        points = next(steps)
        while True:
            points = steps.send(np.asarray(prior.surrogate(place.inputs(points)), np.float64))
    best = sorted(search.chains, key=lambda chain: (not chain.valid, chain.fun if chain.valid else chain.margin))
    return [chain.w.astype(place.start.dtype) for chain in best[:LEADS]]


def _parts(lists: Sequence[Vector | Indices], count: int) -> list[Indices]:
    """The rows of each list when they are put one after another, as far as there are `count` rows."""
    ends = np.cumsum([0, *map(len, lists)])
    return [np.arange(min(low, count), min(high, count)) for low, high in pairwise(ends)]


def _distinct(points: Array, at: list[Vector]) -> tuple[list[int], Indices]:
    """Which row of the points that are asked each point is (-1: the point of its chain), and which points these are."""
    each = len(points) // len(at)
    rows: list[int] = []
    asked: list[int] = []
    for i, w in enumerate(at):
        known = {w.astype(points.dtype).tobytes(): -1}
        for j in range(i * each, (i + 1) * each):
            key = points[j].tobytes()
            if key not in known:
                known[key] = len(asked)
                asked.append(j)
            rows.append(known[key])
    return rows, np.array(asked, np.intp)


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
