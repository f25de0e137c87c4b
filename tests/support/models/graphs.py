"""Small ONNX models from a few nodes."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from onnx import TensorProto, helper, numpy_helper


def model_of(
    nodes: Sequence[Any],
    inputs: Mapping[str, Sequence[int]],
    outputs: Mapping[str, Sequence[int] | None],
    weights: Mapping[str, Any] | None = None,
) -> Any:
    """A model whose inputs and outputs are float32, of these shapes (None: as the nodes say)."""
    given, made = (
        [helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name, shape in tensors.items()]
        for tensors in (inputs, outputs)
    )
    kept = [numpy_helper.from_array(np.asarray(value), name) for name, value in (weights or {}).items()]
    graph = helper.make_graph(nodes, "net", given, made, kept)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=10)
