"""Training: small real runs, interrupted and resumed, and what they export."""

from __future__ import annotations

import json
from dataclasses import asdict, replace
from typing import TYPE_CHECKING

import numpy as np
import pytest

from zomirror import datasets, models
from zomirror.datasets import Dataset
from zomirror.errors import ArgumentError, DataError
from zomirror.paper.training import NAMES, train

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    import onnx
    import torch
    from torch import nn

    from zomirror.paper.training.batches import Batches, prepare
    from zomirror.paper.training.export import export, scores, to_onnx
    from zomirror.paper.training.lenet import PLAN as LENET
    from zomirror.paper.training.lenet import lenet
    from zomirror.paper.training.loop import Epoch, Watch, accuracy, fit
    from zomirror.paper.training.plan import Plan
    from zomirror.paper.training.resnet20 import PLAN as RESNET20
    from zomirror.paper.training.resnet20 import resnet20
    from zomirror.paper.training.run import TRAININGS, accuracy_of, make


@pytest.fixture(autouse=True, scope="module")
def _torch() -> None:
    """Imported by the worker that runs these tests, and not by all that collect them: it takes two seconds."""
    global LENET, RESNET20, TRAININGS, Batches, Epoch, Watch, accuracy, accuracy_of, export, fit, lenet, make
    global nn, onnx, prepare, resnet20, scores, to_onnx, torch
    import onnx
    import torch
    from torch import nn

    from zomirror.paper.training.batches import Batches, prepare
    from zomirror.paper.training.export import export, scores, to_onnx
    from zomirror.paper.training.lenet import PLAN as LENET
    from zomirror.paper.training.lenet import lenet
    from zomirror.paper.training.loop import Epoch, Watch, accuracy, fit
    from zomirror.paper.training.resnet20 import PLAN as RESNET20
    from zomirror.paper.training.resnet20 import resnet20
    from zomirror.paper.training.run import TRAININGS, accuracy_of, make


def tiny() -> Plan:
    return replace(LENET, name="tiny", epochs=4, batch_size=4)


def small_photographs() -> Plan:
    return replace(RESNET20, epochs=3, batch_size=4, sides=((0, 8), (1, 12), (2, 16)), pad=2)


@pytest.fixture(autouse=True)
def _one_thread() -> Iterator[None]:
    """Threads inside an operator wait for each other where the machine has other work."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


class Stop(Exception):  # noqa: N818
    """Raised in the middle of an epoch, as a signal would be."""


def photographs(n: int = 12, side: int = 16) -> Dataset:
    random = np.random.default_rng(0)
    images = random.integers(0, 256, (n, side, side, 3), dtype=np.uint8)
    return Dataset(images, random.integers(0, 10, n), tuple("0123456789"), np.arange(n))


def stop_at(epoch: int, batch: int) -> Watch:
    def step(now_epoch: int, now_batch: int, _batches: int) -> None:
        if (now_epoch, now_batch) == (epoch, batch):
            raise Stop

    return Watch(step=step)


def same(first: nn.Module, second: nn.Module) -> bool:
    pairs = zip(first.state_dict().items(), second.state_dict().items(), strict=True)
    return all(a == b and torch.equal(x, y) for (a, x), (b, y) in pairs)


def plain(history: tuple[Epoch, ...]) -> list[Epoch]:
    return [replace(record, seconds=0.0, cpu_seconds=0.0) for record in history]


@pytest.mark.parametrize("name", ["lenet", "resnet20"])
def test_an_interrupted_run_resumed_equals_an_uninterrupted_one(tmp_path: Path, name: str):
    lenets = (lenet, tiny(), datasets.digits())
    build, plan, data = lenets if name == "lenet" else (resnet20, small_photographs(), photographs())
    whole, history = fit(build, plan, data, data, seed=3, checkpoint=tmp_path / "whole.pt")
    path = tmp_path / "parts.pt"
    for place in ((0, 2), (1, 1), (plan.epochs - 1, 2)):
        with pytest.raises(Stop):
            fit(build, plan, data, data, seed=3, checkpoint=path, watch=stop_at(*place))
    parts, again = fit(build, plan, data, data, seed=3, checkpoint=path)
    assert same(whole, parts)
    assert plain(history) == plain(again)
    finished, _ = fit(build, plan, data, data, seed=3, checkpoint=path, watch=stop_at(0, 1))  # nothing to do
    assert same(whole, finished)


def test_the_seed_decides_and_nothing_else(tmp_path: Path):
    data = datasets.digits()
    torch.manual_seed(1)
    before = torch.get_rng_state()
    torch.set_num_threads(2)
    one, _ = fit(lenet, tiny(), data, data, seed=0, checkpoint=tmp_path / "1")
    assert torch.equal(torch.get_rng_state(), before)  # the caller's random state is the caller's
    assert torch.get_num_threads() == 2
    torch.manual_seed(2)
    two, _ = fit(lenet, tiny(), data, data, seed=0, checkpoint=tmp_path / "2")
    other, _ = fit(lenet, tiny(), data, data, seed=1, checkpoint=tmp_path / "3")
    assert same(one, two)
    assert not same(one, other)


def test_it_learns(tmp_path: Path):
    data = datasets.digits()
    plan = replace(LENET, epochs=80, batch_size=10, average=0.9)
    network, history = fit(lenet, plan, data, data, seed=0, checkpoint=tmp_path / "c")
    assert accuracy(network, data, plan, side=28) == 1.0
    assert history[-1].loss < 0.2 * history[0].loss


def test_lanes_average_the_gradients_of_their_parts(tmp_path: Path):
    """Without batch statistics two lanes are one batch: the same weights up to rounding."""
    data = datasets.digits()
    plan = replace(tiny(), epochs=1, batch_size=20)
    one, _ = fit(lenet, replace(plan, lanes=1), data, data, seed=0, checkpoint=tmp_path / "1")
    two, _ = fit(lenet, replace(plan, lanes=2), data, data, seed=0, checkpoint=tmp_path / "2")
    for x, y in zip(one.parameters(), two.parameters(), strict=True):
        torch.testing.assert_close(x, y, rtol=1e-5, atol=1e-6)


def test_checkpoints_of_another_run_or_damaged_are_refused(tmp_path: Path):
    data, path = datasets.digits(), tmp_path / "c.pt"
    fit(lenet, tiny(), data, data, seed=0, checkpoint=path, until=1)
    content = path.read_bytes()
    with pytest.raises(DataError, match="expected the checkpoint of run"):
        fit(lenet, tiny(), data, data, seed=1, checkpoint=path)
    for damaged in (content[: len(content) // 2], b"", b"no checkpoint"):
        path.write_bytes(damaged)
        with pytest.raises(DataError, match="delete it to start anew"):
            fit(lenet, tiny(), data, data, seed=0, checkpoint=path)


class Payload:
    """Runs code when unpickled."""

    def __init__(self, marker: Path) -> None:
        self.marker = marker

    def __reduce__(self):
        return (self.marker.touch, ())


def test_a_checkpoint_cannot_run_code(tmp_path: Path):
    path, marker = tmp_path / "c.pt", tmp_path / "ran"
    torch.save({"digest": Payload(marker)}, path)
    data = datasets.digits()
    with pytest.raises(DataError, match="delete it to start anew"):
        fit(lenet, tiny(), data, data, seed=0, checkpoint=path)
    assert not marker.exists()


# Batches and plan


def test_a_batch_is_images_shifted_and_mirrored():
    data = photographs(side=16)
    plan = replace(small_photographs(), batch_size=12, sides=((0, 16),), mean=(0.0,) * 3, std=(1.0 / 255,) * 3, pad=1)
    x, labels = next(Batches(data, plan).epoch(0, 0))
    images = np.pad(data.images, ((0, 0), (1, 1), (1, 1), (0, 0)), mode="edge")
    every = {
        image[a : a + 16, b : b + 16][:, ::flip].tobytes(): int(label)
        for image, label in zip(images, data.labels, strict=True)
        for a in range(3)
        for b in range(3)
        for flip in (1, -1)
    }
    rows = x.round().to(torch.uint8).permute(0, 2, 3, 1).contiguous().numpy()
    assert [every[row.tobytes()] for row in rows] == labels.tolist()
    assert sorted(labels.tolist()) == sorted(data.labels.tolist())  # each image once


def test_epochs_differ_and_repeat():
    batches = Batches(photographs(), small_photographs())
    first, again, next_ = ([x for x, _ in batches.epoch(0, epoch)] for epoch in (0, 0, 1))
    assert all(torch.equal(x, y) for x, y in zip(first, again, strict=True))
    assert [x.shape[-1] for x in first] == [8] * len(batches)
    assert [x.shape[-1] for x in next_] == [12] * len(batches)


def test_scaling_to_a_smaller_side_keeps_the_mean():
    data, plan = photographs(), replace(RESNET20, sides=((0, 16),))
    images = torch.from_numpy(data.images)
    small, full = prepare(images, plan, 8), prepare(images, plan, 16)
    torch.testing.assert_close(small.mean((2, 3)), full.mean((2, 3)), atol=0.1, rtol=0)
    pixel = (data.images[0, 0, 0].astype(float) / 255 - plan.mean) / plan.std
    np.testing.assert_allclose(full[0, :, 0, 0], pixel, rtol=1e-5)


@pytest.mark.parametrize("name", NAMES)
def test_the_rate_goes_up_once_and_down_to_zero(name: str):
    plan = TRAININGS[name].plan
    rates = np.array([plan.rate(share) for share in np.linspace(0, 1, 401)])
    top = int(rates.argmax())
    assert rates[top] == pytest.approx(plan.peak_rate, rel=0.02)
    assert (np.diff(rates[: top + 1]) > 0).all()
    assert (np.diff(rates[top:]) < 0).all()
    assert rates[-1] == 0
    assert rates[0] == pytest.approx(plan.peak_rate / 10)
    assert plan.side(plan.epochs) == plan.sides[-1][1]


def test_a_shortened_plan_keeps_its_shape_and_has_a_digest_of_its_own():
    short = RESNET20.shortened(26)
    assert [first for first, _ in short.sides] == [0, 5, 14]
    assert len({plan.digest(seed) for plan in (short, RESNET20, LENET) for seed in (0, 1)}) == 6


@pytest.mark.parametrize(
    ("change", "complaint"),
    [({"epochs": 0}, "epochs"), ({"batch_size": 5}, "batch_size"), ({"sides": ((1, 8),)}, "sides")],
)
def test_a_plan_that_cannot_be_is_refused(change, complaint):
    with pytest.raises(ArgumentError, match=complaint):
        replace(LENET, **change)


# Export


@pytest.mark.parametrize(("name", "shape"), [("lenet", (1, 28, 28)), ("resnet20", (3, 32, 32))])
def test_the_exported_file_repeats_torch_for_any_number_of_rows(tmp_path: Path, name: str, shape: tuple[int, ...]):
    torch.manual_seed(0)
    network = {"lenet": lenet, "resnet20": resnet20}[name]()
    network.train()
    for _ in range(3):  # running statistics that are not those of a new network
        network(torch.randn(16, *shape) * 2 + 1)
    export(network, tmp_path / "a.onnx", shape)
    network.eval()
    content = (tmp_path / "a.onnx").read_bytes()
    for n in (1, 7):
        rows = np.random.default_rng(n).normal(size=(n, *shape)).astype(np.float32)
        wanted = network(torch.from_numpy(rows)).detach().numpy()
        np.testing.assert_allclose(scores(content, rows), wanted, rtol=1e-3, atol=1e-4)
    graph = onnx.load_from_string(content).graph
    assert [value.name for value in (*graph.input, *graph.output)] == ["x", "y"]
    assert "BatchNormalization" not in {node.op_type for node in graph.node}


def test_a_layer_that_cannot_be_exported_is_named():
    with pytest.raises(DataError, match="Tanh"):
        to_onnx(nn.Sequential(nn.Flatten(), nn.Linear(4, 10), nn.Tanh()), (4,), 10)


def test_make_writes_a_file_and_a_card_that_agree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("ZOMIRROR_CACHE", str(tmp_path / "cache"))
    data, lines = datasets.digits(), []  # type: ignore[var-annotated]
    plan = replace(tiny(), average=0.5)
    made = make(lenet, plan, data, data, data="twenty digits", seed=0, output=tmp_path / "out", report=lines.append)
    card = json.loads(made.card.read_text())
    assert card["test_accuracy"] == made.accuracy == accuracy_of(made.onnx, data, plan)
    assert card["epochs"] == len(lines) == 4
    assert lines[-1].startswith("tiny epoch 4/4: side 28, loss ")
    content = made.onnx.read_bytes()
    again = make(lenet, plan, data, data, data="twenty digits", seed=0, output=tmp_path / "out", report=lines.append)
    assert len(lines) == 4  # from the checkpoint: nothing was computed
    assert again.onnx.read_bytes() == content


def test_an_unknown_name_is_refused():
    with pytest.raises(ArgumentError, match=r"name: expected one of \['lenet', 'resnet20'\], got 'vgg'"):
        train("vgg")
    assert tuple(TRAININGS) == NAMES


# What comes with the package


def test_the_bundled_lenet_classifies_the_bundled_digits():
    data = datasets.digits()
    assert accuracy_of(models.path("lenet"), data, LENET) == 1.0
    rows = (data.images[:, None] / np.float32(255)).astype(np.float32)
    found = scores(models.path("lenet").read_bytes(), rows)
    assert (found.argmax(axis=1) == data.labels).all()
    assert found.min() < -1  # logits, and not probabilities
    assert found.max() > 1


@pytest.mark.parametrize("name", models.names())
def test_the_plan_on_the_card_is_the_plan_in_the_code(name: str):
    facts = models.card(name).facts
    plan = TRAININGS[name].plan
    assert facts["plan"] == json.loads(json.dumps(asdict(plan)))
