"""An ONNX file with an input for each column of a table, as skl2onnx writes pipelines."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from zomirror.checks import positive_integer
from zomirror.classifiers.onnx_session import open_session
from zomirror.classifiers.protocol import check_batch_rows
from zomirror.errors import ArgumentError, OracleError

if TYPE_CHECKING:
    from numpy.typing import NDArray

_TYPES: dict[str, Any] = {
    "tensor(float)": np.float32,
    "tensor(double)": np.float64,
    "tensor(int64)": np.int64,
    "tensor(int32)": np.int32,
    "tensor(bool)": np.bool_,
    "tensor(string)": np.object_,
}
_FLOATS = ("tensor(float)", "tensor(double)")


def takes_columns(session: Any) -> bool:
    """Whether each input is one column, (n, 1), and there are several of them or one of texts."""
    inputs = session.get_inputs()
    single = all(len(one.shape) == 2 and one.shape[1] == 1 and one.type in _TYPES for one in inputs)
    return single and (len(inputs) > 1 or inputs[0].type == "tensor(string)")


@dataclass(frozen=True, slots=True)
class OnnxColumns:
    """Runs an ONNX model whose inputs are named like the columns of a frame; a missing text is given as "".

    Parameters
    ----------
    model : bytes
        The content of a self-contained file.
    output : str, optional
        The output with the scores; by default the only one that holds (n, classes) floats.
    threads : int
        Threads of one batch.
    batch_rows : int, optional
        The largest number of rows of one call.
    name : str
        The name of the file, for messages.
    """

    model: bytes = field(repr=False)
    output: str | None = None
    threads: int = 1
    batch_rows: int | None = None
    name: str = "model.onnx"
    _session: Any = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        check_batch_rows(self.batch_rows)
        positive_integer("threads", self.threads)
        session = open_session(self.model, self.threads, self.name)
        outputs = {one.name: one for one in session.get_outputs()}
        fit = [
            one.name for one in outputs.values() if one.type in _FLOATS and len(one.shape) == 2 and one.shape[1] != 1
        ]
        wanted = self.output or (fit[0] if len(fit) == 1 else None)
        if wanted not in fit:
            raise ArgumentError(
                f"expected an output of {self.name!r} with float scores (n, classes >= 2), got {list(outputs)}: "
                "choose it with onnx_classifier(path, output=...), or export class scores (skl2onnx: zipmap=False)"
            )
        object.__setattr__(self, "output", wanted)
        object.__setattr__(self, "_session", session)

    def __reduce__(self) -> tuple[type[OnnxColumns], tuple[object, ...]]:
        return OnnxColumns, (self.model, self.output, self.threads, self.batch_rows, self.name)

    @property
    def input_shape(self) -> None:
        """Not known: the inputs are rows of a table."""
        return

    @property
    def feature_names(self) -> tuple[str, ...]:
        """The columns, in the order of the file's inputs."""
        return tuple(one.name for one in self._session.get_inputs())

    def __call__(self, batch: NDArray[Any], /) -> NDArray[np.floating[Any]]:
        """Refused: an array has no columns by name."""
        raise ArgumentError(
            f"expected rows of a table for {self.name!r}, which has an input for each column, got an array: "
            "give features=zm.Table(...)"
        )

    def scores(self, rows: Any) -> object:
        """The scores of a frame."""
        try:
            feed = {one.name: _column(rows[one.name], _TYPES[one.type]) for one in self._session.get_inputs()}
            return self._session.run([self.output], feed)[0]
        except Exception as error:  # onnxruntime has no exception class of its own
            raise OracleError(f"the ONNX model {self.name!r} failed on rows of a table: {error}") from error


def _column(column: Any, dtype: Any) -> NDArray[Any]:
    """A column as (n, 1) of the type that the model takes."""
    values: NDArray[Any] = np.asarray(column.to_numpy() if hasattr(column, "to_numpy") else column)
    if dtype is np.object_:
        values = np.array(["" if value is None or value != value else str(value) for value in values.tolist()], object)
    return values.astype(dtype).reshape(-1, 1)
