"""attack() and attack_many(): the sparsest adversarial input of any classifier that can be asked."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

from zomirror.contrast.explanation import Explanation, as_html
from zomirror.contrast.front import OPTIONS, find_many, find_one, refuse_unknown
from zomirror.contrast.options import Wanted
from zomirror.contrast.progress import Callback
from zomirror.contrast.search.attack_search import search
from zomirror.contrast.searches import Task
from zomirror.engine.durable import PathLike
from zomirror.errors import DataError
from zomirror.features.image_axes import counted
from zomirror.methods.descent import Method
from zomirror.numerics.arrays import Array
from zomirror.result import History, Status

if TYPE_CHECKING:
    from matplotlib.figure import Figure

ATTACK = Task("attack", "attacking", search, revision=1)
KNOWN = OPTIONS - {"kind", "signed", "loss", "baseline", "search"}


@dataclass(frozen=True, slots=True, eq=False)
class Attack:
    """An adversarial input of least penalty among all that were seen: a signed PN, in an attacker's words.

    Norms are in units of each feature's range (the `scale` of attack()); arrays are in input units and shape.
    """

    explanation: Explanation
    """The same as a pertinent negative, with the history, the scores and the settings."""

    @property
    def success(self) -> bool:
        """Whether the class of `adversarial` is another (the target, if one was given), by more than kappa."""
        return self.explanation.valid

    @property
    def label(self) -> int:
        """The class of the input."""
        return self.explanation.label

    @property
    def adversarial_label(self) -> int:
        """The class of `adversarial`; -1 when it is not known."""
        return self.explanation.contrast_label

    @property
    def adversarial(self) -> Array:
        """The adversarial input, inside the box; without success the point that came nearest."""
        return self.explanation.perturbed

    @property
    def x(self) -> Array:
        """The sparse change."""
        return self.explanation.x

    @property
    def x0(self) -> Array:
        """The input."""
        return self.explanation.x0

    @property
    def margin(self) -> float:
        """Below 0: by how much the other class wins, in units of the scores."""
        return self.explanation.margin

    @property
    def l1_norm(self) -> float:
        """|x / scale|_1."""
        return self.explanation.l1_norm

    @property
    def l2_norm(self) -> float:
        """|x / scale|_2."""
        return self.explanation.l2_norm

    @property
    def nnz(self) -> int:
        """Features that change."""
        return self.explanation.nnz

    @property
    def nfev(self) -> int:
        """Model queries used."""
        return self.explanation.nfev

    @property
    def sent(self) -> int:
        """Model queries ever sent, retries included."""
        return self.explanation.sent

    @property
    def used(self) -> int:
        """Another name of nfev, beside `sent` and `lost`."""
        return self.explanation.used

    @property
    def lost(self) -> int:
        """Model queries sent whose answers never came, or came in a later attempt."""
        return self.explanation.lost

    @property
    def seed(self) -> int:
        """What repeats it."""
        return self.explanation.seed

    @property
    def status(self) -> Status:
        """Why it ended."""
        return self.explanation.status

    @property
    def message(self) -> str:
        """The same in a sentence."""
        return self.explanation.message.replace(Status.NOT_FOUND.value, "no adversarial input was found")

    @property
    def history(self) -> History:
        """The best point of every batch."""
        return self.explanation.history

    def words(self) -> str:
        """The answer in a sentence."""
        one = self.explanation
        if not self.success:
            return f"attack on {one.name_of(one.label)}: {self.message}"
        count = counted(one.x, one.nnz, one.feature_names)
        return f"{one.name_of(one.label)} is taken for {one.name_of(one.contrast_label)} with {count} changed"

    def plot(self, **options: Any) -> Figure:
        """The input, the change, what the model saw and its scores, as a matplotlib Figure."""
        return self.explanation.plot(**{"title": self.words()} | options)

    def _repr_html_(self) -> str:
        return as_html(self.plot(), self.words())

    def to_json(self) -> str:
        """Everything as JSON text, in the format of an explanation."""
        return self.explanation.to_json()

    @classmethod
    def from_json(cls, text: str) -> Self:
        """The attack that `to_json` wrote; DataError says what is wrong with any other text."""
        found = Explanation.from_json(text)
        if found.kind != "PN":
            raise DataError(f"expected an attack, got a {found.kind}, which changes no class")
        return cls(found)

    def __repr__(self) -> str:
        reached = "success" if self.success else "no success"
        return f"Attack({reached}, {self.label} -> {self.adversarial_label}, nnz={self.nnz}, l1={self.l1_norm:.4g})"


def attack(
    model: Any,
    x0: object,
    *,
    l1: float = 0.01,
    l2: float = 0.0,
    kappa: float = 0.0,
    bounds: object = (0.0, 1.0),
    budget: int = 10_000,
    rng: object = None,
    method: Method | None = None,
    label: int | None = None,
    target: int | None = None,
    fixed: object = None,
    scale: object = None,
    mean: object = None,
    std: object = None,
    feature_names: object = None,
    class_names: object = None,
    callback: Callback | None = None,
    max_sent: int | None = None,
    run_dir: PathLike | None = None,
) -> Attack:
    """The sparsest input inside `bounds` that the model takes for another class than x0 (for `target`, if given).

    Of all adversarial inputs seen within `budget` queries it is the one with the least l1 |x|_1 + (l2/2) |x|_2^2,
    x being the change in units of each feature's range; the ratio l2 / l1 trades few changed features for small
    changes. With `kappa` the other class must win by more than that, in units of the scores.

    The search walks from x0 to the boundary with linear models of the scores (in a picture of the cells where they
    change most); where that finds nothing, and for a `method` of your own, it descends as explain() does.
    `model`, the other options, budgets, callbacks and run directories are those of explain(), and so is the JSON.
    """
    wanted = Wanted(
        kind="PN",
        signed=True,
        l1=l1,
        l2=l2,
        kappa=kappa,
        bounds=bounds,
        budget=budget,
        method=method,
        label=label,
        target=target,
        fixed=fixed,
        scale=scale,
        mean=mean,
        std=std,
        feature_names=feature_names,
        class_names=class_names,
    )
    return Attack(find_one(ATTACK, model, x0, wanted, rng=rng, callback=callback, max_sent=max_sent, run_dir=run_dir))


def attack_many(
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
) -> list[Attack]:
    """attack() for every input of X, several at a time in joint batches; one result each, in order.

    What is said of explain_many() holds: the seeds, `lockstep`, `progress`, failures of single inputs, run directories
    and `workers`. `options` are those of attack().
    """
    refuse_unknown(ATTACK, options, KNOWN)
    found = find_many(
        ATTACK,
        model,
        X,
        {"kind": "PN", "signed": True, "l1": 0.01, "l2": 0.0} | options,
        rng=rng,
        lockstep=lockstep,
        progress=progress,
        max_sent=max_sent,
        run_dir=run_dir,
        workers=workers,
    )
    return [Attack(one) for one in found]
