"""A torch module as a classifier."""

from __future__ import annotations

import threading
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import chain
from typing import TYPE_CHECKING, Any

import numpy as np

from zomirror.classifiers.protocol import ask, check_batch_rows
from zomirror.errors import ArgumentTypeError, OracleError

if TYPE_CHECKING:
    from collections.abc import Iterator

    import torch
    from numpy.typing import NDArray


def is_torch_module(model: object) -> bool:
    """Whether `model` is a torch.nn.Module, without importing torch."""
    names = [(cls.__module__, cls.__name__) for cls in type(model).__mro__]
    return ("torch.nn.modules.module", "Module") in names


class _EvalMode:
    """Sets a module to eval mode during calls, then restores the mode of every submodule.

    Calls of several threads are counted: the modes are restored after the last of them.
    """

    __slots__ = ("_askers", "_lock", "_training")

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._askers = 0
        self._training: list[torch.nn.Module] = []

    @contextmanager
    def of(self, module: torch.nn.Module) -> Iterator[None]:
        with self._lock:
            if self._askers == 0:
                self._training = [part for part in module.modules() if part.training]
                for part in self._training:
                    part.training = False
            self._askers += 1
        try:
            yield
        finally:
            with self._lock:
                self._askers -= 1
                if self._askers == 0:
                    for part in self._training:
                        part.training = True


@dataclass(frozen=True, slots=True, repr=False)
class Torch:
    """Calls `module` in eval mode without gradients, on the device and in the dtype of its weights.

    A writeable batch of the right dtype is not copied; a read-only one is, since a module may write into its input.
    """

    module: torch.nn.Module
    batch_rows: int | None = None
    _mode: _EvalMode = field(init=False, compare=False, default_factory=_EvalMode)

    def __post_init__(self) -> None:
        if not is_torch_module(self.module):
            raise ArgumentTypeError(
                f"expected module to be a torch.nn.Module, got {type(self.module).__name__}: give the module"
            )
        check_batch_rows(self.batch_rows)

    def __repr__(self) -> str:
        return f"Torch(module={type(self.module).__name__}, batch_rows={self.batch_rows})"

    def __reduce__(self) -> tuple[type[Torch], tuple[object, ...]]:
        return Torch, (self.module, self.batch_rows)

    def __call__(self, batch: NDArray[Any], /) -> NDArray[np.floating[Any]]:
        """Return the scores of `batch`."""
        import torch  # loaded already: there is a module

        with self._mode.of(self.module), torch.inference_mode():
            return ask(self._answer, batch, self.batch_rows)

    def _answer(self, block: NDArray[Any]) -> object:
        import torch

        weights = chain(self.module.parameters(), self.module.buffers())
        weight = next((one for one in weights if one.is_floating_point()), None)
        native = {torch.float64: np.float64, torch.float16: np.float16}
        if weight is None:
            block = np.ascontiguousarray(block, dtype=None if block.dtype.kind == "f" else np.float32)
        else:  # numpy has no bfloat16: float32 is sent
            block = np.ascontiguousarray(block, dtype=native.get(weight.dtype, np.float32))
        tensor = torch.from_numpy(block) if block.flags.writeable else torch.tensor(block)
        if weight is not None:
            tensor = tensor.to(weight.device, weight.dtype)
        try:
            scores = self.module(tensor)
        except Exception as error:
            raise OracleError(f"the torch module failed on a batch of shape {tuple(tensor.shape)}: {error}") from error
        if not isinstance(scores, torch.Tensor):
            raise OracleError(
                f"expected the module to return one tensor of scores, got {type(scores).__name__}: "
                "wrap it in a function that returns the logits"
            )
        try:
            scores = scores.detach().cpu()
            return (scores.float() if scores.dtype == torch.bfloat16 else scores).numpy()
        except Exception as error:  # a meta device has no numbers, a sparse tensor no array
            raise OracleError(
                f"expected scores that numpy can read, got a tensor of {scores.layout} on {scores.device}: {error}"
            ) from error
