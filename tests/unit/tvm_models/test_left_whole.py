"""A bundle that another runtime runs as a whole needs nothing else where it runs."""

import json
import platform
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from onnx import TensorProto, helper

from tuneloom.model import TensorInfo
from tuneloom.tuners.tvm.importing.relax import ForeignPart
from tuneloom.tuners.tvm.models.compiling.foreign import ForeignModel
from tuneloom.tuners.tvm.runner.model import Model
from tuneloom.tuners.tvm.runner.refused import Refused

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


def infos(*names: str) -> list[TensorInfo]:
    return [TensorInfo(name=name, shape=(2, 4), dtype="float32") for name in names]


class Port:
    def __init__(self, name: str) -> None:
        self.name = name

    def get_names(self) -> set[str]:
        return {self.name}


class PretendedOpenvino:
    """Core, model and request at once; its ports come in another order than the model's."""

    def __init__(self) -> None:
        self.inputs, self.outputs = [Port("x"), Port("unread")], [Port("r"), Port("n")]
        self.settings: dict[str, Any] = {}
        self.shapes: list[Any] = []

    def read_model(self, _model: Any) -> "PretendedOpenvino":
        return self

    def reshape(self, shapes: dict[Any, Any]) -> None:
        self.shapes = list(shapes.values())

    def compile_model(self, _model: Any, _device: str, settings: dict[str, Any]) -> "PretendedOpenvino":
        self.settings = settings
        return self

    def create_infer_request(self) -> "PretendedOpenvino":
        return self

    def infer(self, given: dict[Any, Any], *, share_inputs: bool) -> dict[Any, Any]:
        assert share_inputs
        x = given[self.inputs[0]]
        return {self.outputs[0]: np.maximum(x, 0), self.outputs[1]: -x}


def test_openvino_gets_values_by_name_and_computes_in_single_precision(
    bundle: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pretended = PretendedOpenvino()
    monkeypatch.setitem(sys.modules, "openvino", SimpleNamespace(Core=lambda: pretended))
    manifest = json.loads((bundle / "bundle.json").read_text())
    manifest["onnxruntime"][0]["runtime"] = "openvino"
    (bundle / "bundle.json").write_text(json.dumps(manifest))
    negative, positive = Model(bundle).run([np.zeros_like(X), X])
    assert np.array_equal(negative, -X) and np.array_equal(positive, np.maximum(X, 0))
    assert pretended.settings["INFERENCE_PRECISION_HINT"] == "f32" and pretended.shapes == [[2, 4]] * 2


def test_a_runtime_that_is_missing_or_unknown_is_named_with_the_remedy(
    bundle: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    manifest = json.loads((bundle / "bundle.json").read_text())
    monkeypatch.setitem(sys.modules, "ai_edge_litert", None)
    for runtime, remedy in (("tflite", "pip install ai-edge-litert"), ("newer", "tune it again")):
        manifest["onnxruntime"][0]["runtime"] = runtime
        (bundle / "bundle.json").write_text(json.dumps(manifest))
        with pytest.raises(Refused, match=remedy):
            Model(bundle)


@pytest.fixture
def bundle(tmp_path: Path) -> Path:
    tensors = [{"name": name, "shape": [2, 4], "dtype": "float32"} for name in ("unread", "x", "n", "r")]
    part = {"function": "f", "file": "part_0.onnx", "operators": ["Relu"], "whole": True}
    manifest = {
        "inputs": tensors[:2],
        "outputs": tensors[2:],
        "target": {"machine": platform.machine(), "cpu_flags": {}, "device": "cpu"},
        "onnxruntime": [part],
    }
    (tmp_path / "bundle.json").write_text(json.dumps(manifest))
    (tmp_path / "part_0.onnx").write_bytes(content())
    return tmp_path


def test_the_runner_needs_no_tvm(bundle: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "tvm", None)
    negative, positive = Model(bundle).run([X, X])
    assert np.array_equal(negative, -X) and np.array_equal(positive, np.maximum(X, 0))


def test_the_session_gets_values_and_returns_outputs_in_the_order_of_the_model() -> None:
    part = ForeignPart(function="f", operators=(), content=content(), whole=True)
    model = ForeignModel(part, 1, infos("unread", "x"), infos("n", "r"))
    negative, positive = model.run([np.zeros_like(X), X])
    assert np.array_equal(negative, -X) and np.array_equal(positive, np.maximum(X, 0))
    assert model.timer([X, X])() > 0
