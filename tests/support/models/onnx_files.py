"""ONNX files small enough to tune in seconds, and ones that are wrong on purpose."""

from pathlib import Path
from typing import Any

import numpy as np


def write_network(path: Path, *, channels: int = 8, size: int | str = 8, batch: int | str = 1) -> Path:
    """A 1×1 convolution with a ReLU; a name as `size` or `batch` leaves that dimension open."""
    return _written(path, _network(["Relu"], channels, size, batch))


def write_attention(path: Path, *, masked: bool) -> Path:
    """Attention over an open number of rows; with a mask, which is added to the scores, zeros hide rows."""
    from onnx import TensorProto, helper, numpy_helper

    shape, mask = [1, "length", 8], [1, "length"]
    nodes = [
        helper.make_node("Transpose", ["x"], ["t"], perm=[0, 2, 1]),
        helper.make_node("MatMul", ["x", "t"], ["scores"]),
        helper.make_node("Sub", ["mask", "one"], ["hidden"]),
        helper.make_node("Mul", ["hidden", "much"], ["far"]),
        helper.make_node("Unsqueeze", ["far", "axis"], ["wide"]),
        helper.make_node("Add", ["scores", "wide"], ["seen"]),
        helper.make_node("Softmax", ["seen" if masked else "scores"], ["parts"], axis=-1),
        helper.make_node("MatMul", ["parts", "x"], ["y"]),
    ]
    constants = {"one": np.float32(1), "much": np.float32(1e4), "axis": np.array([1])}
    graph = helper.make_graph(
        nodes if masked else [node for node in nodes if node.output[0] in ("t", "scores", "parts", "y")],
        "attention",
        [
            helper.make_tensor_value_info(name, TensorProto.FLOAT, own)
            for name, own in (("x", shape), ("mask", mask))[: 2 if masked else 1]
        ],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, shape)],
        [numpy_helper.from_array(np.asarray(value), name) for name, value in constants.items() if masked],
    )
    return _written(path, helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8))


def write_unknown_operator(path: Path) -> Path:
    """A graph whose last node no importer knows."""
    from onnx import helper

    model = _network([], 8, 8, 1)
    model.graph.node.append(
        helper.make_node("Frobnicate", ["c"], ["y"], name="last_node", domain="org.example")
    )
    model.opset_import.append(helper.make_opsetid("org.example", 1))
    return _written(path, model)


def write_truncated(path: Path) -> Path:
    """The first two thirds of a good file."""
    content = _network(["Relu"], 8, 8, 1).SerializeToString()
    path.write_bytes(content[: 2 * len(content) // 3])
    return path


def write_text(path: Path) -> Path:
    """A text file under a model's name."""
    path.write_text("Dear reader,\nthis is no network.\n")
    return path


def network_input(channels: int = 8, size: int = 8) -> Any:
    """An input for `write_network`, the same every time."""
    return np.random.default_rng(7).uniform(-1, 1, (1, channels, size, size)).astype("float32")


def network_inputs(count: int) -> Any:
    """A batch of different inputs for `write_network`."""
    return np.concatenate([network_input() * (n + 1) for n in range(count)])


def onnx_answer(path: Path, **values: Any) -> Any:
    """The first output of a file in ONNX Runtime."""
    import onnxruntime

    return onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"]).run(None, values)[0]


def _network(tail: list[str], channels: int, size: int | str, batch: int | str) -> Any:
    from onnx import TensorProto, helper, numpy_helper

    weights = np.random.default_rng(0).normal(size=(2 * channels, channels, 1, 1)).astype("float32")
    nodes = [helper.make_node("Conv", ["x", "w"], ["c"], name="convolution")]
    nodes += [helper.make_node(kind, ["c"], ["y"], name=kind.lower()) for kind in tail]
    shape = [batch, channels, size, size]
    graph = helper.make_graph(
        nodes,
        "small",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [batch, 2 * channels, size, size])],
        [numpy_helper.from_array(weights, "w")],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def _written(path: Path, model: Any) -> Path:
    path.write_bytes(model.SerializeToString())
    return path
