"""A bundle that ONNX Runtime runs as a whole needs nothing else where it runs."""

import json
import platform
import sys
from pathlib import Path

import numpy as np
import pytest
from onnx import TensorProto, helper

from tuneloom.tuners.tvm import runner
from tuneloom.tuners.tvm.importing.relax import ForeignPart
from tuneloom.tuners.tvm.models.compiling.foreign import ForeignModel

X = np.arange(8, dtype=np.float32).reshape(2, 4) - 3


def content() -> bytes:
    """Two inputs, one of which nothing reads, and two outputs."""
    nodes = [helper.make_node("Relu", ["x"], ["r"]), helper.make_node("Neg", ["x"], ["n"])]
    tensors = {
        name: helper.make_tensor_value_info(name, TensorProto.FLOAT, [2, 4])
        for name in ("unread", "x", "n", "r")
    }
    graph = helper.make_graph(nodes, "net", [tensors["unread"], tensors["x"]], [tensors["n"], tensors["r"]])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=10)
    return bytes(model.SerializeToString())


@pytest.fixture
def bundle(tmp_path: Path) -> Path:
    infos = [{"name": name, "shape": [2, 4], "dtype": "float32"} for name in ("unread", "x", "n", "r")]
    part = {"function": "f", "file": "part_0.onnx", "operators": ["Relu"], "whole": True}
    manifest = {
        "inputs": infos[:2],
        "outputs": infos[2:],
        "target": {"machine": platform.machine(), "cpu_flags": {}, "device": "cpu"},
        "onnxruntime": [part],
    }
    (tmp_path / "bundle.json").write_text(json.dumps(manifest))
    (tmp_path / "part_0.onnx").write_bytes(content())
    return tmp_path


def test_the_runner_needs_no_tvm(bundle: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "tvm", None)
    negative, positive = runner.Model(bundle).run([X, X])
    assert np.array_equal(negative, -X) and np.array_equal(positive, np.maximum(X, 0))


def test_the_session_gets_values_and_returns_outputs_in_the_order_of_the_model() -> None:
    model = ForeignModel(ForeignPart(function="f", operators=(), content=content(), whole=True), threads=1)
    negative, positive = model.run([np.zeros_like(X), X])
    assert np.array_equal(negative, -X) and np.array_equal(positive, np.maximum(X, 0))
    assert model.timer([X, X])() > 0
