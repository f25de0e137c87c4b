"""Two products with bias, ReLU and softmax: small, and something for every backend."""

from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from tuneloom.tuners.tvm.importing.sources import ImportedModel, import_model

ROWS, INPUTS, HIDDEN, CLASSES = 32, 48, 64, 16


def _weights() -> tuple[Any, ...]:
    random = np.random.default_rng(5)
    shapes = ((INPUTS, HIDDEN), (HIDDEN,), (HIDDEN, CLASSES), (CLASSES,))
    return tuple((random.standard_normal(shape) / 8).astype("float32") for shape in shapes)


WEIGHTS = _weights()


def write_perceptron(path: Path) -> Path:
    """The network as an ONNX file."""
    from onnx import TensorProto, helper, numpy_helper, save

    kinds = ("MatMul", "Add", "Relu", "MatMul", "Add", "Softmax")
    operands = ("w0", "w1", None, "w2", "w3", None)
    names = ["x", "a", "b", "c", "d", "e", "y"]
    nodes = [
        helper.make_node(kind, [names[n], *([other] if other else [])], [names[n + 1]])
        for n, (kind, other) in enumerate(zip(kinds, operands, strict=True))
    ]
    shapes = {"x": (ROWS, INPUTS), "y": (ROWS, CLASSES)}
    ends = [helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name, shape in shapes.items()]
    weights = [numpy_helper.from_array(value, f"w{n}") for n, value in enumerate(WEIGHTS)]
    graph = helper.make_graph(nodes, "perceptron", ends[:1], ends[1:], weights)
    save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), str(path))
    return path


@cache
def perceptron() -> ImportedModel:
    """The network, imported once in a process."""
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        return import_model(str(write_perceptron(Path(folder) / "perceptron.onnx")))
