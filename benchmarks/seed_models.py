"""Small sound models of every format, which `mutations.py` makes wrong."""

import io
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

import tests_on_path  # noqa: F401
from support.models.onnx_files import write_network
from support.models.tflite_files import write_derived_tflite, write_spectral_tflite, write_tflite
from support.models.tflite_graphs import write_branching_tflite, write_lookup_tflite, write_summing_tflite

_WRITERS: dict[str, Callable[[Path], object]] = {
    "net.onnx": write_network,
    "net.tflite": write_tflite,
    "derived.tflite": write_derived_tflite,
    "spectral.tflite": write_spectral_tflite,
    "branching.tflite": lambda path: write_branching_tflite(path, 3),
    "lookup.tflite": write_lookup_tflite,
    "summing.tflite": lambda path: write_summing_tflite(path, 1.0),
}
X8 = (1, 3, 8, 8)


def seeds(folder: Path) -> dict[str, bytes]:
    """Models by name; without PyTorch, an archive that only looks like one of its programs."""
    for name, write in _WRITERS.items():
        write(folder / name)
    files = {name: (folder / name).read_bytes() for name in _WRITERS}
    models = {"several": _several, "recurrent": _recurrent, "quantised": _quantised, "looping": _looping}
    return {
        **files,
        **{f"{name}.onnx": make().SerializeToString() for name, make in models.items()},
        **dict(_programs()),
    }


def _programs() -> Iterator[tuple[str, bytes]]:
    try:
        import torch
        from torch import nn
    except ImportError:
        yield "net.pt2", b"PK\x03\x04" + bytes(26) + b"net/version" + b"7"
        return
    image, words = torch.zeros(X8), torch.zeros((1, 6), dtype=torch.int64)
    plain = nn.Sequential(nn.Conv2d(3, 4, 3, padding=1), nn.ReLU(), nn.Flatten(), nn.Linear(256, 5))
    layer = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True)
    for name, network, example in (
        ("net.pt2", plain, image),
        ("words.pt2", nn.Sequential(nn.Embedding(9, 8), layer, nn.LayerNorm(8)), words),
    ):
        made = io.BytesIO()
        with torch.no_grad():
            network.eval()
            torch.export.save(torch.export.export(network, (example,)), made)
        yield name, made.getvalue()


def _several() -> onnx.ModelProto:
    """A network with constants, attributes, shapes that are computed, and a branch."""
    nodes = [
        helper.make_node("Conv", ["x", "w"], ["a"], pads=[1, 1, 1, 1]),
        helper.make_node("Shape", ["a"], ["s"]),
        helper.make_node("Reshape", ["a", "to"], ["b"]),
        helper.make_node("Softmax", ["b"], ["c"], axis=1),
        helper.make_node("Gather", ["c", "at"], ["d"], axis=1),
        helper.make_node("Concat", ["d", "d"], ["e"], axis=0),
        helper.make_node("ReduceSum", ["e", "axes"], ["y"], keepdims=0),
    ]
    constants = {
        "w": np.full((4, 3, 3, 3), 0.1, np.float32),
        "to": np.array([4, 64]),
        "at": np.array([0, 5, 9]),
        "axes": np.array([1]),
    }
    return _model(nodes, constants, X8, (8,))


def _recurrent() -> onnx.ModelProto:
    """An LSTM in both directions."""
    nodes = [
        helper.make_node("LSTM", ["x", "w", "r"], ["a"], hidden_size=4, direction="bidirectional"),
        helper.make_node("ReduceMean", ["a"], ["y"], axes=[0, 1], keepdims=0),
    ]
    weights = {name: np.full((2, 16, size), 0.1, np.float32) for name, size in (("w", 3), ("r", 4))}
    return _model(nodes, weights, (5, 1, 3), (1, 4))


def _quantised() -> onnx.ModelProto:
    """A convolution between whole numbers, as quantising tools write it."""
    nodes = [
        helper.make_node("QuantizeLinear", ["x", "s", "z"], ["q"]),
        helper.make_node("DequantizeLinear", ["q", "s", "z"], ["a"]),
        helper.make_node("DequantizeLinear", ["w", "s", "z"], ["b"]),
        helper.make_node("Conv", ["a", "b"], ["c"], group=1, strides=[2, 2]),
        helper.make_node("Clip", ["c", "low", "high"], ["y"]),
    ]
    constants = {
        "w": np.ones((4, 3, 3, 3), np.int8),
        "s": np.float32(0.1),
        "z": np.int8(0),
        "low": np.float32(0),
        "high": np.float32(6),
    }
    return _model(nodes, constants, X8, (1, 4, 3, 3))


def _looping() -> onnx.ModelProto:
    """A loop of three turns and a branch that is known beforehand."""
    kinds = {"turn": (TensorProto.INT64, []), "on": (TensorProto.BOOL, []), "v": (TensorProto.FLOAT, [1, 4])}
    inputs = [helper.make_tensor_value_info(name, *kind) for name, kind in kinds.items()]
    outputs = [
        helper.make_tensor_value_info(name, *kinds[like]) for name, like in (("more", "on"), ("w", "v"))
    ]
    steps = [helper.make_node("Identity", ["on"], ["more"]), helper.make_node("Add", ["v", "v"], ["w"])]
    taken = helper.make_tensor_value_info("t", TensorProto.FLOAT, [1, 4])
    then = helper.make_graph([helper.make_node("Relu", ["a"], ["t"])], "then", [], [taken])
    nodes = [
        helper.make_node(
            "Loop", ["turns", "yes", "x"], ["a"], body=helper.make_graph(steps, "body", inputs, outputs)
        ),
        helper.make_node("If", ["yes"], ["y"], then_branch=then, else_branch=then),
    ]
    return _model(nodes, {"turns": np.array(3), "yes": np.array(True)}, (1, 4), (1, 4))


def _model(nodes: list[Any], constants: dict[str, Any], taken: tuple[int, ...], made: tuple[int, ...]) -> Any:
    x, y = (
        helper.make_tensor_value_info(name, TensorProto.FLOAT, shape)
        for name, shape in (("x", taken), ("y", made))
    )
    tensors = [numpy_helper.from_array(np.asarray(value), name) for name, value in constants.items()]
    graph = helper.make_graph(nodes, "seed", [x], [y], tensors)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
