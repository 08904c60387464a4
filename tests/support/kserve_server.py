"""A KServe model server on this machine only; run by the Python of its own environment.

python tests/support/kserve_server.py MODEL.onnx PORT COUNTS [rows]

It serves the ONNX model as `lenet`; with `rows` also `loans`, a pipeline of table rows, and `reviews`, one of texts.
Every batch of `lenet` is a line in the file COUNTS, of the others in COUNTS.loans and COUNTS.reviews: how many rows,
and whether they came as binary.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
import uvicorn
from kserve import Model, ModelServer
from kserve.utils.utils import get_predict_response


class Served(Model):  # type: ignore[misc]
    """The model `lenet`; its input is `x`, its output `output-0`."""

    def __init__(self, path: Path, counts: Path) -> None:
        super().__init__("lenet")
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = 1
        self.session = onnxruntime.InferenceSession(path.read_bytes(), options)
        self.counts = counts
        self.ready = True

    def get_input_types(self) -> list[dict[str, Any]]:
        return [{"name": "x", "datatype": "FP32", "shape": [-1, 1, 28, 28]}]

    def get_output_types(self) -> list[dict[str, Any]]:
        return [{"name": "output-0", "datatype": "FP32", "shape": [-1, 10]}]

    async def predict(self, payload: Any, headers: Any = None, **_: Any) -> Any:
        if isinstance(payload, dict):  # version 1 of the protocol
            batch = np.array(payload["instances"], np.float32)
            count(self.counts, batch, "json")
            return {"predictions": self.session.run(["y"], {"x": batch})[0].tolist()}
        batch = payload.inputs[0].as_numpy()
        how = "binary" if "inference-header-content-length" in headers else "json"
        count(self.counts, batch, how)
        [scores] = self.session.run(["y"], {"x": batch})
        return get_predict_response(payload, scores, self.name)


class ServedRows(Model):  # type: ignore[misc]
    """A function of a list of rows or texts."""

    def __init__(self, name: str, scores: Any, counts: Path) -> None:
        super().__init__(name)
        self.scores, self.counts = scores, counts.with_name(f"{counts.name}.{name}")
        self.counts.touch()
        self.ready = True

    async def predict(self, payload: Any, headers: Any = None, **_: Any) -> Any:
        count(self.counts, payload["instances"], "json")
        return {"predictions": self.scores(payload["instances"]).tolist()}


def count(file: Path, batch: Any, how: str) -> None:
    with file.open("a") as opened:
        opened.write(f"{len(batch)} {how}\n")


def rows_of(counts: Path) -> list[Model]:
    """The pipelines, fitted here as in the tests."""
    sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
    import pandas as pd

    from tests.support import loan_table, review_texts

    columns = list(loan_table.loans().columns)
    granted = loan_table.pipeline()
    review_texts.pipeline()
    return [
        ServedRows("loans", lambda rows: granted.predict_log_proba(pd.DataFrame(rows)[columns]), counts),
        ServedRows("reviews", review_texts.scores, counts),
    ]


if __name__ == "__main__":
    model, port, counts = Path(sys.argv[1]), int(sys.argv[2]), Path(sys.argv[3])
    # KServe would bind every address of the machine.
    config = uvicorn.Config
    vars(uvicorn)["Config"] = lambda *args, **options: config(*args, **(options | {"host": "127.0.0.1"}))
    ModelServer(http_port=port, enable_grpc=False).start(
        [Served(model, counts), *(rows_of(counts) if "rows" in sys.argv else [])]
    )
