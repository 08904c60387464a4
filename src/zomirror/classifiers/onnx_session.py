"""Starts onnxruntime on the bytes of a model."""

from __future__ import annotations

from typing import Any

from zomirror.errors import DataError


def open_session(model: bytes, threads: int, name: str) -> Any:
    """Start an onnxruntime session on the bytes, on the CPU, with exactly `threads` threads."""
    import onnxruntime  # slow to import

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    options.log_severity_level = 4  # errors are raised; nothing goes to stderr
    options.add_session_config_entry("session.load_model_format", "ONNX")
    # A spinning thread would take a core from the optimiser.
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    try:
        return onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
    except Exception as error:  # onnxruntime has no exception class of its own
        raise DataError(
            f"expected an ONNX model that onnxruntime can run, got {name!r} ({error}): export it again"
        ) from error
