"""What `zomirror explain` and `zomirror attack` have in common: from what was typed to files and an exit code."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import typer
from numpy.typing import NDArray

from zomirror.cli.command_file import stoppable, write_command
from zomirror.cli.inputs import Input, model_and_inputs, read_inputs
from zomirror.cli.model import Access, Model, load_model
from zomirror.cli.options import numbers, pair, repeated, shape_of, workers_of
from zomirror.cli.saved import Saved
from zomirror.cli.show import say, say_json, warn
from zomirror.errors import ArgumentError, OracleError
from zomirror.result import Status

if TYPE_CHECKING:
    from zomirror.contrast import Explanation

ONCE = ("model", "inputs", "run_dir", "json", "quiet")
"""What is not repeated among the options of a command that is given again."""


@dataclass(frozen=True, slots=True, eq=False)
class Work:
    """The model, the options and the inputs as typed, and where everything goes."""

    model: Model
    inputs: list[Input]
    options: dict[str, Any]
    """Of explain_many() or attack_many(), whatever the input."""
    seed: int
    bounds: tuple[float, float] | None
    baseline: float | None
    signed: bool
    mean: tuple[float, ...] | None
    std: tuple[float, ...] | None
    repeat: list[str]
    """The options as typed, for the command that repeats one explanation."""
    saved: Saved
    run_dir: Path | None
    command: list[str]
    """What was typed, for `zomirror runs resume`."""
    workers: int | str | None
    show: bool

    def find(self, kinds: Sequence[str], tell: Callable[[str, list[Explanation]], None]) -> list[Explanation]:
        """The answers of each kind (PP, PN, attack) for each input, saved; `tell` is called as each input is done."""
        names = [self.saved.name(given.name) for given in self.inputs]
        found: dict[tuple[int, str], Explanation] = {}
        failed: list[Explanation] = []
        told = 0

        def done(i: int, kind: str, one: Explanation) -> None:
            nonlocal told
            if one.status is Status.ERROR:
                failed.append(one)
            elif one.status is not Status.INTERRUPTED:
                found[i, kind] = one = self._written(one, kind, self.inputs[i])
                self.saved.keep(f"{names[i]}-{kind}", one)
            while told < len(names) and all((told, kind) in found for kind in kinds):
                tell(self.inputs[told].name, [found[told, kind] for kind in kinds])
                told += 1

        try:
            with stoppable(self.run_dir):
                write_command(self.run_dir, self.command)
                for kind in kinds:
                    self._search(kind, names, done)
        finally:
            if len(found) < len(kinds) * len(names) and self.saved.files:
                warn(f"{len(self.saved.files)} files of what was done are in {self.saved.folder}")
        if failed:
            raise OracleError(failed[0].message)
        return [found[i, kind] for i in range(len(names)) for kind in kinds]

    def _search(self, kind: str, names: Sequence[str], done: Callable[[int, str, Explanation], None]) -> None:
        """explain_many() or attack_many(), once for all inputs that have the same bounds, baseline and names."""
        from zomirror.contrast import attack_many, explain_many

        for part, some in enumerate(self._alike()):
            x0 = [self._normalised(self.inputs[i].x) for i in some]
            first, folder = self.inputs[some[0]], kind if part == 0 else f"{kind}-{part + 1}"
            given = self.options | self._place(first)
            if kind != "attack":
                signed = kind == "PN" and (self.signed or first.bounds is not None)
                baseline = self._normalised(self._baseline(first)) if kind == "PP" else 0.0
                given |= {"kind": kind, "signed": signed, "baseline": baseline}
            (attack_many if kind == "attack" else explain_many)(
                self.model.ask,
                x0,
                rng=[self.seed] * len(some),
                progress=None if self.show else False,
                callback=partial(_placed, done, some, kind),
                run_dir=None if self.run_dir is None else self.run_dir / folder,
                names=[names[i] for i in some],
                workers=None if self.workers == 1 else self.workers,
                **given,
            )

    def _alike(self) -> Iterator[list[int]]:
        """The inputs by what they have in common: their shape, and the table they come from."""
        groups: dict[Any, list[int]] = {}
        for i, given in enumerate(self.inputs):
            table = None if given.bounds is None else b"".join(side.tobytes() for side in given.bounds)
            groups.setdefault((given.x.shape, given.feature_names, table), []).append(i)
        yield from groups.values()

    def end(self, found: Sequence[Explanation], *, json: bool) -> None:
        """The last line, or all of it as JSON; exit code 1 if something is not valid."""
        if json:
            say_json([self._summary(one) for one in found])
        else:
            folder = self.saved.folder
            say(f"pictures and .json files are in {folder}; a page of them: zomirror report {folder}")
        if not all(one.valid for one in found):
            raise typer.Exit(1)

    def _summary(self, one: Explanation) -> dict[str, Any]:
        """What a script wants to know; the arrays are in the file."""
        names = ("kind", "valid", "label", "contrast_label", "nnz", "l1_norm", "l2_norm", "objective", "margin")
        summary = {name: getattr(one, name) for name in (*names, "nfev", "sent", "seed", "status", "message")}
        scores = {"scores_before": one.scores_before.tolist(), "scores_after": one.scores_after.tolist()}
        words = {"label_name": one.name_of(one.label), "contrast_name": one.name_of(one.contrast_label)}
        text, picture = self.saved.of(one)
        files = {"file": str(text), "picture": str(picture), "command": one.settings["command"]}
        return {"input": one.settings["input"]} | summary | words | scores | files

    def _written(self, found: Explanation, kind: str, given: Input) -> Explanation:
        """The explanation with the command that repeats it among its settings."""
        task = ["attack"] if kind == "attack" else ["explain"]
        words = [*task, self.model.name, given.name, *([] if kind == "attack" else ["--kind", kind])]
        command = shlex.join(["zomirror", *words, "--seed", str(self.seed), *self.repeat])
        written = {"model": self.model.name, "input": given.name, "command": command}
        return replace(found, settings=found.settings | written)

    def _place(self, given: Input) -> dict[str, Any]:
        """The options of Vector for inputs like this one."""
        return {
            "bounds": self._bounds(given),
            "mean": self._like(self.mean, given.x) if self._normalises else None,
            "std": self._like(self.std, given.x) if self._normalises else None,
            "feature_names": given.feature_names,
        }

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


def _placed(
    done: Callable[[int, str, Explanation], None], places: Sequence[int], kind: str, i: int, one: Explanation
) -> None:
    """Say that the search of this kind for the input at places[i] is done."""
    done(places[i], kind, one)


def begin(
    context: typer.Context,
    given: list[str],
    options: dict[str, Any],
    access: Access,
    *,
    seed: int,
    bounds: str | None,
    mean: str | None,
    std: str | None,
    class_names: str | None,
    shape: str | None,
    drop: list[str] | None,
    run_dir: Path | None,
    out: Path,
    workers: str | None,
    show: bool,
    baseline: float | None = None,
    signed: bool = True,
    each: Sequence[str] = (),
) -> Work:
    """Everything that was typed, read and checked; options named in `each` differ between the answers."""
    first, texts = model_and_inputs(given)
    model = load_model(first, access)
    names = tuple(class_names.split(",")) if class_names else None
    return Work(
        model,
        read_inputs(texts, shape=shape_of(shape) or model.shape, drop=tuple(drop or ())),
        options | {"class_names": names},
        seed=seed,
        bounds=pair("--bounds", bounds),
        baseline=baseline,
        signed=signed,
        mean=numbers("--mean", mean) or model.mean,
        std=numbers("--std", std) or model.std,
        repeat=repeated(context, without=(*ONCE, *each, "seed", "out")),
        saved=Saved(out),
        run_dir=run_dir,
        command=[str(context.info_name), model.name, *texts, *repeated(context, without=ONCE)],
        workers=workers_of(workers),
        show=show,
    )
