"""An ONNX file as a classifier, run by onnxruntime on the CPU."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from zomirror.checks import positive_integer, reading
from zomirror.classifiers.onnx_columns import OnnxColumns, takes_columns
from zomirror.classifiers.onnx_file import check_onnx, read_onnx
from zomirror.classifiers.onnx_session import open_session
from zomirror.classifiers.protocol import ask, check_batch_rows
from zomirror.errors import ArgumentError, OracleError

if TYPE_CHECKING:
    from numpy.typing import NDArray

_FLOATS: dict[str, np.dtype[Any]] = {
    "tensor(float)": np.dtype(np.float32),
    "tensor(double)": np.dtype(np.float64),
    "tensor(float16)": np.dtype(np.float16),
}


def onnx_classifier(
    path: str | Path,
    *,
    output: str | None = None,
    threads: int = 1,
    batch_rows: int | None = None,
    max_bytes: int = 2**30,
) -> Onnx | OnnxColumns:
    """Load the classifier in an ONNX file.

    A file with an input (n, 1) for each column, as skl2onnx writes pipelines, takes rows of a Table.

    Parameters
    ----------
    path : str or Path
        The file.
    output : str, optional
        The output with the scores, for a model with several outputs.
    threads : int
        Threads of one batch. Small networks gain nothing from two; whole runs are better spread over processes.
    batch_rows : int, optional
        The largest number of rows of one call.
    max_bytes : int
        The largest size of the file.
    """
    with reading("path", path):
        path = Path(path)
    model = read_onnx(path, max_bytes=max_bytes)
    try:
        return Onnx(model, output=output, threads=threads, batch_rows=batch_rows, name=path.name)
    except ArgumentError:
        if takes_columns(open_session(model, 1, path.name)):
            return OnnxColumns(model, output, threads, batch_rows, path.name)
        raise


@dataclass(frozen=True, slots=True)
class Onnx:
    """Runs the ONNX `model` (the bytes of a self-contained file); input is cast to the dtype of the model's input.

    A model with a fixed batch size is run in blocks of that size, the last one padded with copies of its last row.
    A pickle holds the bytes; unpickling makes a new session.
    """

    model: bytes = field(repr=False)
    output: str | None = None
    threads: int = 1
    batch_rows: int | None = None
    name: str = "model.onnx"
    _session: Any = field(init=False, repr=False, compare=False)
    _input: str = field(init=False, repr=False, compare=False)
    _output: str = field(init=False, repr=False, compare=False)
    _dtype: np.dtype[Any] = field(init=False, repr=False, compare=False)
    _shape: tuple[int | None, ...] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        check_batch_rows(self.batch_rows)
        positive_integer("threads", self.threads)
        check_onnx(self.model, self.name)
        session = open_session(self.model, self.threads, self.name)
        name, dtype, shape = _only_input(session, self.name)
        if shape and shape[0] is not None and self.batch_rows not in (None, shape[0]):
            raise ArgumentError(
                f"expected batch_rows {shape[0]} or None, got {self.batch_rows}: the batch size of "
                f"{self.name!r} is fixed, export it with a dynamic first axis"
            )
        private = {
            "_session": session,
            "_input": name,
            "_output": _scores_output(session, self.output, self.name),
            "_dtype": dtype,
            "_shape": shape,
        }
        for key, value in private.items():
            object.__setattr__(self, key, value)

    def __reduce__(self) -> tuple[type[Onnx], tuple[object, ...]]:
        return Onnx, (self.model, self.output, self.threads, self.batch_rows, self.name)

    @property
    def input_shape(self) -> tuple[int | None, ...] | None:
        """The shape of one input, with None for a side of any length; None when the file does not say."""
        return self._shape[1:] or None

    def __call__(self, batch: NDArray[Any], /) -> NDArray[np.floating[Any]]:
        """Return the scores of `batch`."""
        wanted = self._shape
        got = np.shape(batch)
        if wanted and (
            len(got) != len(wanted) or any(w is not None and w != g for w, g in zip(wanted[1:], got[1:], strict=True))
        ):
            shown = ", ".join("any" if w is None else str(w) for w in wanted[1:])
            raise ArgumentError(
                f"expected a batch of shape (n, {shown}) for {self.name!r}, got {got}: "
                "reshape the input to what the model was trained on"
            )
        return ask(self._answer, batch, self.batch_rows if not wanted or wanted[0] is None else wanted[0])

    def _answer(self, block: NDArray[Any]) -> object:
        rows = len(block)
        block = np.ascontiguousarray(block, dtype=self._dtype)
        missing = (self._shape[0] or rows) - rows if self._shape else 0
        if missing:
            block = np.concatenate([block, np.repeat(block[-1:], missing, axis=0)])
        try:
            scores = self._session.run([self._output], {self._input: block})[0]
        except Exception as error:  # onnxruntime has no exception class of its own
            raise OracleError(
                f"the ONNX model {self.name!r} failed on a batch of shape {block.shape}: {error}"
            ) from error
        return scores[:rows] if missing else scores


def _only_input(session: Any, name: str) -> tuple[str, np.dtype[Any], tuple[int | None, ...]]:
    """Return name, dtype and shape (None: any) of the one input."""
    inputs = session.get_inputs()
    if len(inputs) != 1:
        names = [one.name for one in inputs]
        raise ArgumentError(
            f"expected a model with one input, got {name!r} with {len(inputs)} ({names}): "
            "wrap it in a function that fills in the others"
        )
    only = inputs[0]
    if only.type not in _FLOATS:
        raise ArgumentError(
            f"expected a model with a float input, got {only.type} in {name!r}: export it with float input"
        )
    shape = tuple(side if isinstance(side, int) and side > 0 else None for side in only.shape)
    if len(shape) == 1:
        raise ArgumentError(f"expected input (n, *shape), got {only.shape} in {name!r}: export it with an axis of rows")
    return only.name, _FLOATS[only.type], shape


def _scores_output(session: Any, output: str | None, name: str) -> str:
    """Return the name of the output with the scores, checked for type and shape."""
    outputs = {one.name: one for one in session.get_outputs()}
    if output is None:
        if len(outputs) != 1:
            raise ArgumentError(
                f"expected a model with one output, got {name!r} with {list(outputs)}: "
                "choose the scores with onnx_classifier(path, output=...)"
            )
        output = next(iter(outputs))
    if output not in outputs:
        raise ArgumentError(f"expected output one of {list(outputs)} of {name!r}, got {output!r}: give one of them")
    chosen = outputs[output]
    sides = chosen.shape if chosen.type in _FLOATS else None
    if sides is None or (sides and (len(sides) != 2 or sides[1] == 1)):
        raise ArgumentError(
            f"expected float scores (n, classes >= 2), got {chosen.type} of shape {chosen.shape} in output "
            f"{output!r} of {name!r}: choose another output, or export class scores (skl2onnx: zipmap=False)"
        )
    return output
