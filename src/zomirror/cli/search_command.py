"""What `zomirror explain` and `zomirror attack` share: from the words typed to files and an exit code."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import typer
from numpy.typing import NDArray

from zomirror.cli.arguments import (
    RegionsChoice,
    SearchOptions,
    cap_of,
    class_of,
    numbers,
    pair,
    repeated,
    shape_of,
    workers_of,
)
from zomirror.cli.commands.runs import stoppable, write_command
from zomirror.cli.inputs import Input, TableOptions, model_and_inputs, read_inputs
from zomirror.cli.model import LoadedModel, load_model
from zomirror.cli.saved import Saved, run_name
from zomirror.cli.show import say, say_json, warn
from zomirror.errors import ArgumentError, OracleError
from zomirror.result import Status
from zomirror.schema.feature_space import like, normalised

if TYPE_CHECKING:
    from zomirror.contrast import Explanation

ONCE = ("model", "inputs", "run_dir", "json", "quiet")
"""Parameters that are left out of a stored command's options."""


@dataclass(frozen=True, slots=True, eq=False)
class SearchCommand:
    """One call of `zomirror explain` or `zomirror attack`, read and checked."""

    typed: SearchOptions
    settings: dict[str, Any]
    """Options of explain_many() or attack_many() that are the same for every input."""
    model: LoadedModel
    inputs: list[Input]
    baseline: float | None
    signed: bool
    mean: tuple[float, ...] | None
    std: tuple[float, ...] | None
    explains: bool
    """Whether it is `zomirror explain`; an attack changes pixels unless it is told otherwise."""
    repeat: list[str]
    """The options typed, for the command that repeats one explanation."""
    command: list[str]
    """The command typed, for `zomirror runs resume`."""
    saved: Saved
    answers: int = 1
    """PNs of each row of a table."""

    @classmethod
    def of(
        cls,
        context: typer.Context,
        typed: SearchOptions,
        settings: dict[str, Any],
        *,
        baseline: float | None = None,
        signed: bool = True,
        answers: int = 1,
    ) -> SearchCommand:
        """Load the model, read the inputs and check the options."""
        name, texts = model_and_inputs([typed.model, *(typed.inputs or [])])
        model = load_model(typed, name)
        shared = {name: getattr(typed, name) for name in ("l1", "l2", "kappa")}
        shared |= {"label": class_of(typed.label), "target": class_of(typed.target)}
        ruled = [getattr(typed, name) for name in ("fixed", "increasing", "decreasing", "categorical")]
        table = TableOptions(tuple(typed.drop or ()), tuple(typed.categorical or ()), framed=any(ruled) or answers > 1)
        names = tuple(typed.class_names.split(",")) if typed.class_names else None
        workers = workers_of(typed.workers)
        parsed = {
            "bounds": pair("--bounds", typed.bounds),
            "class_names": names,
            "workers": None if workers == 1 else workers,
        }
        return cls(
            typed,
            settings | shared | parsed,
            model,
            read_inputs(texts, shape=shape_of(typed.shape) or model.shape, table=table),
            baseline=baseline,
            signed=signed,
            mean=numbers("--mean", typed.mean) or model.mean,
            std=numbers("--std", typed.std) or model.std,
            explains="loss" in settings,
            repeat=repeated(context, without=(*ONCE, "kind", "workers", "seed", "out")),
            command=[str(context.info_name), model.name, *texts, *repeated(context, without=ONCE)],
            saved=Saved(typed.out),
            answers=answers,
        )._checked()

    def _checked(self) -> SearchCommand:
        """ArgumentError for options that the inputs do not have."""
        framed = [one.frame is not None for one in self.inputs]
        given = ("--fixed", "--increasing", "--decreasing", "--categorical", "--answers")
        wanted = [name for name in given if name in self.repeat]
        if wanted and not all(framed):
            raise ArgumentError(
                f"expected rows of a .csv with {wanted[0]}, got {self.inputs[framed.index(False)].name}"
            )
        unfit = [name for name in ("--bounds", "--baseline", "--signed", "--search") if name in self.repeat]
        if unfit and (parts := [one.name for one in self.inputs if self._in_parts(one)]):
            raise ArgumentError(
                f"expected no {unfit[0]} for {parts[0]}, whose parts are there or not: leave it out"
                + ("" if parts[0] == "-" or parts[0].endswith(".txt") else ", or use --regions pixels")
            )
        if self.typed.regions is not None and not all(one.picture for one in self.inputs):
            other = next(one.name for one in self.inputs if not one.picture)
            raise ArgumentError(f"expected pictures with --regions, got {other}")
        numeric: tuple[str, ...] = ("--bounds", "--baseline", "--mean", "--std", "--shape", "--signed", "--search")
        misfit = [name for name in numeric if name in self.repeat]
        if misfit and any(framed):
            raise ArgumentError(
                f"expected no {misfit[0]} for {self.inputs[framed.index(True)].name}, a row of a table, whose columns "
                "have their own values: use --fixed, --increasing and --decreasing"
            )
        return self

    def run(self, kinds: Sequence[str], tell: Callable[[str, list[Explanation], list[Path]], None]) -> None:
        """Search, save and print; `tell` prints the answers for one input. Exit code 1 if one is not valid."""

        def show(name: str, some: list[Explanation]) -> None:
            if not self.typed.json:
                tell(name, some, [self.saved.of(one)[1] for one in some])

        found = self._find(kinds, show)
        self.saved.overview(found)
        if self.typed.json:
            say_json([self._summary(one) for one in found])
        else:
            folder = self.saved.folder
            say(f"pictures and .json files are in {folder}; a page of them: zomirror report {folder}")
        if not all(one.valid for one in found):
            raise typer.Exit(1)

    def _find(self, kinds: Sequence[str], tell: Callable[[str, list[Explanation]], None]) -> list[Explanation]:
        """Search each kind (PP, PN, attack) for each input and save it; `tell` is called when an input is done."""
        names = [self.saved.name(given.name) for given in self.inputs]
        found: dict[tuple[int, str], list[Explanation]] = {}
        failed: list[Explanation] = []
        told = 0

        def done(i: int, kind: str, one: Explanation) -> None:
            nonlocal told
            if one.status is Status.ERROR:
                failed.append(one)
            elif one.status is not Status.INTERRUPTED:
                some = [self._written(each, kind, self.inputs[i]) for each in (replace(one, others=()), *one.others)]
                found[i, kind] = some
                for number, each in enumerate(some, 1):
                    self.saved.keep(f"{names[i]}-{kind}{'' if number == 1 else f'-{number}'}", each)
            while told < len(names) and all((told, kind) in found for kind in kinds):
                tell(self.inputs[told].name, [each for kind in kinds for each in found[told, kind]])
                told += 1

        try:
            with stoppable(self.typed.run_dir):
                write_command(self.typed.run_dir, self.command, members=len(kinds) * len([*self._alike()]))
                for kind in kinds:
                    self._search(kind, names, done)
        finally:
            if len(found) < len(kinds) * len(names) and self.saved.files:
                warn(f"{len(self.saved.files)} files of finished searches are in {self.saved.folder}")
        if failed:
            raise OracleError(failed[0].message)
        return [one for i in range(len(names)) for kind in kinds for one in found[i, kind]]

    def _search(self, kind: str, names: Sequence[str], done: Callable[[int, str, Explanation], None]) -> None:
        """Call explain_many() or attack_many() once for all inputs with the same bounds, baseline and names."""
        from zomirror.contrast import attack_many, explain_many

        run_dir = self.typed.run_dir
        for part, some in enumerate(self._alike()):
            first, folder = self.inputs[some[0]], kind if part == 0 else f"{kind}-{part + 1}"
            given = self._given(first, kind) | self._budget(first)

            def finished(i: int, one: Explanation, places: list[int] = some) -> None:
                done(places[i], kind, one)

            (attack_many if kind == "attack" else explain_many)(
                self.model.classifier,
                [self.inputs[i].x if self._is_raw(first) else self._normalised(self.inputs[i].x) for i in some],
                rng=[self.typed.seed] * len(some),
                progress=False if self.typed.json or self.typed.quiet else None,
                callback=finished,
                run_dir=None if run_dir is None else run_dir / folder,
                names=None if run_dir is None else [run_name(i, names[i]) for i in some],
                **given,
            )

    def _alike(self) -> Iterator[list[int]]:
        """Groups of inputs that have the same shape and come from the same table."""
        groups: dict[Any, list[int]] = {}
        for i, given in enumerate(self.inputs):
            table = None if given.bounds is None else b"".join(side.tobytes() for side in given.bounds)
            groups.setdefault(
                (np.shape(given.x), given.picture, given.feature_names, table, id(given.frame)), []
            ).append(i)
        yield from groups.values()

    def _summary(self, one: Explanation) -> dict[str, Any]:
        """The numbers for a script; the arrays are in the file."""
        from zomirror.schema.response import response

        summary = {name: value for name, value in response(one).items() if name not in ("changes", "perturbed")}
        text, picture = self.saved.of(one)
        files = {"file": str(text), "picture": str(picture), "command": one.settings["command"]}
        return {"input": one.settings["input"]} | summary | files

    def _written(self, found: Explanation, kind: str, given: Input) -> Explanation:
        """The explanation with the model, the input and the command that repeats it in its settings."""
        task = ["attack"] if kind == "attack" else ["explain"]
        words = [*task, self.model.name, given.name, *([] if kind == "attack" else ["--kind", kind])]
        command = shlex.join(["zomirror", *words, "--seed", str(self.typed.seed), *self.repeat])
        written = {"model": self.model.name, "input": given.name, "command": command}
        return replace(found, settings=found.settings | written)

    def _table(self, given: Input, kind: str) -> dict[str, Any]:
        """The options for rows like this one; the file's rows are the reference."""
        from zomirror.schema.feature_space import features_of

        rules = {name: getattr(self.typed, name) or () for name in ("fixed", "increasing", "decreasing", "categorical")}
        found: dict[str, Any] = {"features": features_of("table", rules, frame=given.frame)}
        if kind != "attack":
            found |= {"kind": kind, "answers": self.answers if kind == "PN" else 1}
        return found

    def _is_raw(self, given: Input) -> bool:
        """Whether the feature space, not the command, prepares the input for the model."""
        return given.frame is not None or self._in_parts(given)

    def _in_parts(self, given: Input) -> bool:
        """Whether it is a text, or a picture that is explained by regions."""
        from zomirror.features.default import LARGE

        if isinstance(given.x, str):
            return True
        if not given.picture or self.typed.regions == RegionsChoice.PIXELS:
            return False
        large = given.x.size // min(given.x.shape) > LARGE if given.x.ndim == 3 else given.x.size > LARGE
        return self.typed.regions is not None or (large and self.explains)

    def _parts(self, given: Input) -> dict[str, Any]:
        """The feature space of a text or a picture."""
        from zomirror.schema.feature_space import features_of

        if isinstance(given.x, str):
            return {"features": features_of("words", {})}
        mean, std = (self.mean, self.std) if self._normalises else (None, None)
        rules = {"regions": self.typed.regions.value} if self.typed.regions else {}
        return {"features": features_of("regions", rules, x0=given.x, mean=mean, std=std)}

    def _budget(self, given: Input) -> dict[str, Any]:
        """How many queries a search may use and send."""
        from zomirror.contrast.options import ARRAY_BUDGET, BUDGET
        from zomirror.features import parts

        default = ARRAY_BUDGET if self.explains and given.frame is None else BUDGET
        budget = self.typed.budget if self.typed.budget is not None else default
        if self.typed.budget is None and self._in_parts(given):
            budget = parts.BUDGET
        return {"budget": budget, "max_sent": cap_of(self.typed.max_sent, budget, self.typed.run_dir)}

    def _given(self, first: Input, kind: str) -> dict[str, Any]:
        """The options of explain_many() or attack_many() for inputs like this one."""
        if self._in_parts(first):
            found = {name: value for name, value in self.settings.items() if name != "bounds"} | self._parts(first)
            return found if kind == "attack" else found | {"kind": kind}
        if first.frame is not None:
            return {name: value for name, value in self.settings.items() if name != "bounds"} | self._table(first, kind)
        given = self.settings | self._vector(first)
        if kind != "attack":
            signed = kind == "PN" and (self.signed or first.bounds is not None)
            baseline = self._normalised(self._baseline(first)) if kind == "PP" else 0.0
            given |= {"kind": kind, "signed": signed, "baseline": baseline}
        return given

    def _vector(self, given: Input) -> dict[str, Any]:
        """The options of Vector for inputs like this one."""
        return {
            "bounds": self._bounds(given),
            "mean": like(self.mean or (), given.x) if self._normalises else None,
            "std": like(self.std or (), given.x) if self._normalises else None,
            "feature_names": given.feature_names,
        }

    @property
    def _normalises(self) -> bool:
        if (self.mean is None) != (self.std is None):
            raise ArgumentError("expected both --mean and --std, or neither")
        return self.mean is not None and self.std is not None and (any(self.mean) or set(self.std) != {1.0})

    def _bounds(self, given: Input) -> Any:
        """In raw units: as typed, those of the table, or 0,1."""
        if self.settings["bounds"] is not None:
            return self.settings["bounds"]
        return (0.0, 1.0) if given.bounds is None else tuple(side.reshape(given.x.shape) for side in given.bounds)

    def _baseline(self, given: Input) -> NDArray[Any]:
        """In raw units: as typed, the mean of the table, or 0."""
        baseline: Any = self.baseline
        if baseline is None:
            baseline = 0.0 if given.mean is None else given.mean.reshape(given.x.shape)
        return np.broadcast_to(np.asarray(baseline, dtype=given.x.dtype), given.x.shape)

    def _normalised(self, x: NDArray[Any]) -> NDArray[Any]:
        return normalised(x, self.mean, self.std) if self._normalises else x
