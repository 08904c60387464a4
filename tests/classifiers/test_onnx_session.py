"""Starting onnxruntime; what runs in it is tested in test_onnx.py and test_onnx_columns.py."""

from __future__ import annotations

import pytest

from zomirror.classifiers.onnx_session import open_session
from zomirror.errors import DataError


def test_bytes_that_are_no_model_are_refused_by_name():
    with pytest.raises(DataError, match="onnxruntime can run"):
        open_session(b"nothing", 1, "bad.onnx")
