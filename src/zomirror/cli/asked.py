"""What `zomirror explain` and `zomirror attack` ask of the library, input by input."""

from __future__ import annotations

import shlex
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from zomirror.cli.inputs import Input
from zomirror.cli.model import Model
from zomirror.cli.progress import meter
from zomirror.errors import ArgumentError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from zomirror.contrast import Explanation
    from zomirror.contrast.adversarial import Attack
    from zomirror.contrast.candidate import Glimpse


@dataclass(frozen=True, slots=True, eq=False)
class Asked:
    """The model and the options that hold for every input."""

    model: Model
    options: dict[str, Any]
    seed: int
    bounds: tuple[float, float] | None
    baseline: float | None
    signed: bool
    mean: tuple[float, ...] | None
    std: tuple[float, ...] | None
    class_names: tuple[str, ...] | None
    repeat: list[str]
    """The options as typed, for the command that repeats one explanation."""

    def answer(
        self, given: Input, kind: str, *, show: bool, run_dir: Path | None = None, look: Callable[[], None]
    ) -> Explanation | Attack:
        """The PP, the PN or, of the kind "attack", the adversarial input of one input."""
        if kind == "attack":
            return self.attack(given, show=show, run_dir=run_dir, look=look)
        return self.explain(given, kind, show=show, run_dir=run_dir, look=look)

    def explain(
        self, given: Input, kind: str, *, show: bool, run_dir: Path | None = None, look: Callable[[], None]
    ) -> Explanation:
        """The PP or PN of one input, with the command that repeats it among its settings; `look` is called often."""
        from zomirror.contrast import explain

        with self._watched(f"{kind} of {given.name}", look, show=show) as watch:
            found = explain(
                self.model.ask,
                self._normalised(given.x),
                kind=kind,
                baseline=self._normalised(self._baseline(given)) if kind == "PP" else 0.0,
                signed=kind == "PN" and (self.signed or given.bounds is not None),
                callback=watch,
                run_dir=run_dir,
                **self._place(given),
            )
        return self._written(found, ["explain", self.model.name, given.name, "--kind", kind], given)

    def attack(self, given: Input, *, show: bool, run_dir: Path | None = None, look: Callable[[], None]) -> Attack:
        """The adversarial input of one input; the rest as for an explanation."""
        from zomirror.contrast.adversarial import Attack, attack

        with self._watched(f"attack on {given.name}", look, show=show) as watch:
            x0 = self._normalised(given.x)
            found = attack(self.model.ask, x0, callback=watch, run_dir=run_dir, **self._place(given))
        return Attack(self._written(found.explanation, ["attack", self.model.name, given.name], given))

    @contextmanager
    def _watched(self, what: str, look: Callable[[], None], *, show: bool) -> Iterator[Callable[[Glimpse], None]]:
        """A callback that shows how far the search is."""
        with meter(what, self.options["budget"], show=show) as told:

            def watch(now: Glimpse) -> None:
                look()
                told.update(now.nfev, now.fun, now.best)

            yield watch

    def _place(self, given: Input) -> dict[str, Any]:
        """The options that hold for this input."""
        return self.options | {
            "bounds": self._bounds(given),
            "rng": self.seed,
            "mean": self._like(self.mean, given.x) if self._normalises else None,
            "std": self._like(self.std, given.x) if self._normalises else None,
            "feature_names": given.feature_names,
            "class_names": self.class_names,
        }

    def _written(self, found: Explanation, command: list[str], given: Input) -> Explanation:
        words = ["zomirror", *command, "--seed", str(self.seed), *self.repeat]
        written = {"model": self.model.name, "input": given.name, "command": shlex.join(words)}
        return replace(found, settings=found.settings | written)

    @property
    def _normalises(self) -> bool:
        if (self.mean is None) != (self.std is None):
            raise ArgumentError("expected both --mean and --std, or neither")
        return self.mean is not None and self.std is not None and (any(self.mean) or set(self.std) != {1.0})

    def _bounds(self, given: Input) -> Any:
        """In raw units: as typed, those of the table, or 0,1."""
        if self.bounds is not None:
            return self.bounds
        return (0.0, 1.0) if given.bounds is None else tuple(side.reshape(given.x.shape) for side in given.bounds)

    def _baseline(self, given: Input) -> NDArray[Any]:
        """In raw units: as typed, the mean of the table, or 0."""
        baseline: Any = self.baseline
        if baseline is None:
            baseline = 0.0 if given.mean is None else given.mean.reshape(given.x.shape)
        return np.broadcast_to(np.asarray(baseline, dtype=given.x.dtype), given.x.shape)

    def _normalised(self, x: NDArray[Any]) -> NDArray[Any]:
        if not self._normalises:
            return x
        return ((x - self._like(self.mean, x)) / self._like(self.std, x)).astype(x.dtype)

    @staticmethod
    def _like(values: tuple[float, ...] | None, x: NDArray[Any]) -> NDArray[np.float64]:
        """One value for all features, one per channel (first axis, or last), or one per feature."""
        given = np.array(values)
        if given.size == x.size:
            return given.reshape(x.shape)
        if x.ndim > 1 and given.size == x.shape[0]:
            given = given.reshape(-1, *(1,) * (x.ndim - 1))
        try:
            return np.broadcast_to(given, x.shape)
        except ValueError:
            raise ArgumentError(
                f"expected --mean and --std with one number, or one for each channel of {x.shape}, got {given.size}"
            ) from None
