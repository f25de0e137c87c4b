"""Types of values that operators without a definition make, learned by running them once."""

from typing import Any

import numpy as np

from tuneloom.compiler.lazy import onnx
from tuneloom.tuners.tvm.importing.onnx.cleaning import CleanGraph
from tuneloom.tuners.tvm.importing.onnx.cleaning.assembling import part_of


def undefined_values(graph: CleanGraph) -> list[str]:
    """Values that operators outside ONNX's own domain make and whose shapes nobody derives."""
    return [
        name
        for node in graph.nodes
        if node.domain not in ("", "ai.onnx")
        for name in node.output
        if name and graph.shape(name) is None
    ]


def types_by_running(graph: CleanGraph, names: list[str]) -> dict[str, Any]:
    """The types these values have when ONNX Runtime runs the graph once; nothing if it refuses.

    A shape that depends on data would be wrong for other data. The program then stops with an
    error where the part is called, since outputs have to fit the memory planned for them.
    """
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    model = part_of(graph, graph.nodes, graph.inputs, names)
    try:
        session = onnxruntime.InferenceSession(
            model.SerializeToString(), options, providers=["CPUExecutionProvider"]
        )
        found = session.run(names, {name: _ones(graph, name) for name in graph.inputs})
    except Exception:
        return {}
    return {
        name: onnx.helper.make_tensor_type_proto(
            onnx.helper.np_dtype_to_tensor_dtype(value.dtype), list(value.shape)
        )
        for name, value in zip(names, found, strict=True)
    }


def _ones(graph: CleanGraph, name: str) -> Any:
    kind = onnx.helper.tensor_dtype_to_np_dtype(graph.types[name].tensor_type.elem_type)
    return np.ones(graph.shape(name) or (), dtype=kind)
