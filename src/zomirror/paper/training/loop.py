"""The training loop: seeded, with one atomic checkpoint per epoch; a resumed training gives the same weights."""

from __future__ import annotations

import copy
import pickle
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import torch
from torch import nn
from torch.nn import functional

from zomirror.datasets import cache
from zomirror.errors import DataError
from zomirror.paper.training.batches import Batches, prepare

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from torch import Tensor

    from zomirror.datasets import Dataset
    from zomirror.paper.training.plan import Plan

_PROBE = 2000


@dataclass(frozen=True)
class Epoch:
    """The record of an epoch; `probe` is the accuracy of the averaged weights on the first 2,000 test images."""

    epoch: int
    side: int
    rate: float
    loss: float
    probe: float
    seconds: float
    cpu_seconds: float


@dataclass(frozen=True)
class Watch:
    """Callbacks: `step` after each batch, `epoch` after each checkpoint."""

    step: Callable[[int, int, int], None] = lambda _epoch, _batch, _batches: None
    epoch: Callable[[Epoch], None] = lambda _epoch: None


def fit(
    build: Callable[[], nn.Module],
    plan: Plan,
    train: Dataset,
    test: Dataset,
    *,
    seed: int,
    checkpoint: Path,
    watch: Watch | None = None,
    until: int | None = None,
) -> tuple[nn.Module, tuple[Epoch, ...]]:
    """The averaged network after all epochs (or `until`), resumed from the checkpoint if there is one."""
    watch = watch or Watch()
    run = _Run(build, plan, seed)
    history = run.load(checkpoint)
    batches = Batches(train, plan)
    with _single_threaded(), ThreadPoolExecutor(plan.lanes) as lanes:
        for epoch in range(len(history), plan.epochs if until is None else until):
            clock, cpu = time.monotonic(), time.process_time()
            loss = run.epoch(epoch, batches, lanes, watch)
            side = plan.side(epoch)
            probe = accuracy(run.averaged, test, plan, side=side, rows=_PROBE)
            spent = round(time.monotonic() - clock, 1), round(time.process_time() - cpu, 1)
            record = Epoch(epoch, side, round(run.rate, 6), round(loss, 5), probe, *spent)
            history = (*history, record)
            run.save(checkpoint, history)
            watch.epoch(record)
    return run.averaged, history


def accuracy(network: nn.Module, data: Dataset, plan: Plan, *, side: int, rows: int | None = None) -> float:
    """The fraction of the first `rows` images (all by default) that the network classifies correctly."""
    images, labels = torch.from_numpy(data.images[:rows]), torch.from_numpy(data.labels[:rows])
    images = images if images.ndim == 4 else images[..., None]
    right = 0
    network.eval()
    with torch.no_grad():
        for start in range(0, len(labels), 250):
            scores = network(prepare(images[start : start + 250], plan, side))
            right += int((scores.argmax(1) == labels[start : start + 250]).sum())
    return right / len(labels)


class _Run:
    """The mutable state of a training: the network, its averaged copy and the momentum."""

    def __init__(self, build: Callable[[], nn.Module], plan: Plan, seed: int) -> None:
        self.plan, self.seed = plan, seed
        with torch.random.fork_rng():
            torch.manual_seed(seed)
            network = build()
        self.network = network.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
        self.averaged = copy.deepcopy(self.network)
        self.replicas = [self.network, *(copy.deepcopy(self.network) for _ in range(plan.lanes - 1))]
        for replica in self.replicas[1:]:
            for mine, shared in zip(replica.parameters(), self.network.parameters(), strict=True):
                mine.data = shared.data
        # No decay of scales and shifts: they are few and do not overfit.
        decayed = [p for p in self.network.parameters() if p.ndim > 1]
        free = [p for p in self.network.parameters() if p.ndim == 1]
        self.optimizer = torch.optim.SGD(
            [{"params": decayed, "weight_decay": plan.weight_decay}, {"params": free, "weight_decay": 0.0}],
            lr=plan.peak_rate,
            momentum=plan.momentum,
            nesterov=True,
        )
        self.rate = 0.0

    def epoch(self, epoch: int, batches: Batches, lanes: ThreadPoolExecutor, watch: Watch) -> float:
        """One pass over the data; the mean loss."""
        total = 0.0
        for replica in self.replicas:
            replica.train()
        for batch, (x, labels) in enumerate(batches.epoch(self.seed, epoch)):
            self.rate = self.plan.rate((epoch + batch / len(batches)) / self.plan.epochs)
            for group in self.optimizer.param_groups:
                group["lr"] = self.rate
            parts = zip(self.replicas, x.chunk(self.plan.lanes), labels.chunk(self.plan.lanes), strict=True)
            # One thread per part of the batch and none inside operators: threads synchronise once per batch, not
            # once per operator, which is several times faster on a shared machine.
            total += sum(lanes.map(lambda part: self._differentiate(*part), parts))
            self._gather()
            self.optimizer.step()
            self._average()
            watch.step(epoch, batch + 1, len(batches))
        return total / (len(batches) * self.plan.lanes)

    def _differentiate(self, replica: nn.Module, x: Tensor, labels: Tensor) -> float:
        replica.zero_grad()
        loss = functional.cross_entropy(replica(x), labels, label_smoothing=self.plan.smoothing)
        loss.backward()  # type: ignore[no-untyped-call]
        return loss.item()

    def _gather(self) -> None:
        for first, *others in zip(*(replica.parameters() for replica in self.replicas), strict=True):
            if first.grad is None:
                continue
            for other in others:
                if other.grad is not None:
                    first.grad.add_(other.grad)
            first.grad.div_(self.plan.lanes)

    @torch.no_grad()
    def _average(self) -> None:
        for mean, now in zip(_floats(self.averaged), _floats(self.network), strict=True):
            mean.lerp_(now, 1.0 - self.plan.average)

    def save(self, path: Path, history: tuple[Epoch, ...]) -> None:
        state = {
            "digest": self.plan.digest(self.seed),
            "replicas": [replica.state_dict() for replica in self.replicas],
            "averaged": self.averaged.state_dict(),
            "optimizer": self.optimizer.state_dict(),
            "history": [asdict(record) for record in history],
        }
        with cache.replacing(path) as file:
            torch.save(state, file)

    def load(self, path: Path) -> tuple[Epoch, ...]:
        """Restore the state of a checkpoint and return its history, empty without a checkpoint."""
        if not path.exists():
            return ()
        try:
            state: dict[str, Any] = torch.load(path, weights_only=True)
            stored = state["digest"]
        except (OSError, RuntimeError, EOFError, KeyError, TypeError, pickle.UnpicklingError) as error:
            raise DataError(f"{path}: expected a checkpoint, got {error!r}: delete it to start anew") from error
        wanted = self.plan.digest(self.seed)
        if stored != wanted:
            raise DataError(f"{path}: expected the checkpoint of run {wanted}, got that of run {stored}")
        for replica, weights in zip(self.replicas, state["replicas"], strict=True):
            replica.load_state_dict(weights)
        self.averaged.load_state_dict(state["averaged"])
        self.optimizer.load_state_dict(state["optimizer"])
        return tuple(Epoch(**record) for record in state["history"])


@contextmanager
def _single_threaded() -> Iterator[None]:
    """One thread per operator, so that sums do not depend on the machine."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def _floats(network: nn.Module) -> list[Tensor]:
    return [value for value in network.state_dict().values() if value.is_floating_point()]
