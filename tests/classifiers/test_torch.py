"""torch modules: asked in eval mode, without gradients, where and as they are, and left as they were."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from zomirror.classifiers import Torch
from zomirror.errors import ArgumentTypeError, OracleError

X = np.random.default_rng(3).normal(size=(6, 4)).astype(np.float32)


if TYPE_CHECKING:
    import torch


@pytest.fixture(autouse=True, scope="module")
def _torch() -> None:
    """Imported by the worker that runs these tests, and not by all that collect them: it takes two seconds."""
    global torch
    import torch


def probe_class() -> Any:
    """A module that records how it was asked."""

    class Probe(torch.nn.Module):
        def __init__(self, dtype: torch.dtype = torch.float32) -> None:
            super().__init__()
            self.layer = torch.nn.Linear(4, 3, dtype=dtype)
            self.dropout = torch.nn.Dropout(0.5)
            self.seen: list[tuple[bool, bool, torch.dtype]] = []
            self.before: Callable[[torch.Tensor], None] = lambda _batch: None

        def forward(self, batch: torch.Tensor) -> torch.Tensor:
            self.before(batch)
            self.seen.append((self.dropout.training, torch.is_grad_enabled(), batch.dtype))
            scores: torch.Tensor = self.dropout(self.layer(batch))
            return scores

    return Probe


def test_eval_mode_while_asked_and_every_mode_restored():
    """A module in training with one frozen part gets exactly that back, also when it raises."""
    probe = probe_class()().train()
    probe.layer.eval()
    classifier = Torch(probe)
    np.testing.assert_array_equal(classifier(X), classifier(X))
    assert probe.seen == [(False, False, torch.float32)] * 2
    assert (probe.training, probe.layer.training, probe.dropout.training) == (True, False, True)
    with pytest.raises(OracleError, match=r"the torch module failed on a batch of shape \(6, 3\)"):
        classifier(X[:, :3])
    assert (probe.training, probe.layer.training, probe.dropout.training) == (True, False, True)
    assert torch.is_grad_enabled()


def test_a_module_in_eval_mode_stays_in_it():
    probe = probe_class()().eval()
    Torch(probe)(X)
    assert not any(part.training for part in probe.modules())


def test_threads_that_ask_at_once_all_see_eval_mode():
    """The modes come back with the last answer only: none of the threads may meet dropout."""

    first_done, both = threading.Event(), threading.Barrier(2, timeout=20)
    slow = probe_class()().train()

    def wait(batch: torch.Tensor) -> None:
        if len(slow.seen) < 2:
            both.wait()  # both are inside now
        if float(batch[0, 0]) > 0:
            first_done.wait(20)

    slow.before = wait
    classifier = Torch(slow)
    with ThreadPoolExecutor(2) as pool:
        early = pool.submit(classifier, -np.ones((2, 4), np.float32))
        late = pool.submit(classifier, np.ones((2, 4), np.float32))
        early.result(20)
        assert not slow.dropout.training
        first_done.set()
        late.result(20)
    assert [training for training, *_ in slow.seen] == [False, False]
    assert slow.dropout.training


@pytest.mark.parametrize(
    ("dtype", "out"),
    [
        ("float32", np.float32),
        ("float64", np.float64),
        ("float16", np.float32),
        ("bfloat16", np.float32),
    ],
)
@pytest.mark.parametrize("given", [np.float32, np.float64, np.int64])
def test_input_is_cast_to_the_dtype_of_the_weights(dtype, out, given):
    probe = probe_class()(getattr(torch, dtype))
    scores = Torch(probe)(X.astype(given))
    assert probe.seen[0][2] == getattr(torch, dtype)
    assert scores.dtype == out
    assert {one.dtype for one in probe.parameters()} == {getattr(torch, dtype)}


def test_a_module_without_weights_is_given_what_comes():
    class Split(torch.nn.Module):
        def forward(self, batch: torch.Tensor) -> torch.Tensor:
            return torch.stack([batch.sum(dim=1), -batch.sum(dim=1)], dim=1)

    assert Torch(Split())(X.astype(np.float64)).dtype == np.float64
    assert Torch(Split())(X).dtype == np.float32
    assert Torch(Split())(np.ones((2, 4), int)).dtype == np.float32


def test_a_batch_that_fits_is_not_copied_unless_it_is_read_only():
    """The one that is lent out read-only stays as it was, even if the module writes into its input."""

    class Writer(torch.nn.Module):
        def forward(self, batch: torch.Tensor) -> torch.Tensor:
            self.address = batch.data_ptr()
            return torch.nn.functional.relu(batch, inplace=True)

    writer, batch = Writer(), X.copy()
    Torch(writer)(batch)
    assert writer.address == batch.ctypes.data
    batch = X.copy()
    batch.flags.writeable = False
    np.testing.assert_array_equal(Torch(writer)(batch), np.maximum(X, 0))
    np.testing.assert_array_equal(batch, X)


def test_a_compiled_graph_is_asked_too():
    batch = torch.export.Dim("batch", min=2)
    exported = torch.export.export(probe_class()().layer, (torch.zeros(3, 4),), dynamic_shapes=({0: batch},)).module()
    np.testing.assert_allclose(Torch(exported)(X), exported(torch.from_numpy(X)).detach().numpy(), rtol=1e-6)


def test_what_is_not_one_tensor_is_refused():
    class Pair(torch.nn.Module):
        def forward(self, batch: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
            return batch, batch

    with pytest.raises(OracleError, match="expected the module to return one tensor of scores, got tuple"):
        Torch(Pair())(X)
    with pytest.raises(ArgumentTypeError, match=r"expected module to be a torch.nn.Module, got function"):
        Torch(lambda batch: batch)  # type: ignore[arg-type]
