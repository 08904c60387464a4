"""A KServe model server with one ONNX model, on this machine only; run by the Python of its own environment.

python tests/support/kserve_server.py MODEL.onnx PORT COUNTS

Every batch is a line in the file COUNTS: how many rows, and whether they came as binary.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

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
        batch = payload.inputs[0].as_numpy()
        how = "binary" if "inference-header-content-length" in headers else "json"
        with self.counts.open("a") as file:
            file.write(f"{len(batch)} {how}\n")
        [scores] = self.session.run(["y"], {"x": batch})
        return get_predict_response(payload, scores, self.name)


if __name__ == "__main__":
    model, port, counts = Path(sys.argv[1]), int(sys.argv[2]), Path(sys.argv[3])
    # KServe would bind every address of the machine.
    config = uvicorn.Config
    uvicorn.Config = lambda *args, **options: config(*args, **(options | {"host": "127.0.0.1"}))
    ModelServer(http_port=port, enable_grpc=False).start([Served(model, counts)])
