"""Kernels that go line by line agree with ONNX Runtime, also where lines don't fill vectors."""

from collections.abc import Callable
from typing import Any

import pytest
from onnx import TensorProto, helper

from tuneloom.tuners.tvm.importing.sources import ImportedModel
from tuneloom.tuners.tvm.lowering.graph import lower
from tuneloom.tuners.tvm.models.final import CompiledModel, build_model
from tuneloom.tuners.tvm.targets.target import TargetSpec


def test_a_kernel_without_loops_is_compiled_as_it_is(
    imported: Callable[[Any], ImportedModel], host: TargetSpec, agrees: Callable[[Any, CompiledModel], None]
) -> None:
    graph = helper.make_graph(
        [helper.make_node("TopK", ["x", "k"], ["y", "places"])],
        "net",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, (4, 20))],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, (4, 5))],
        [helper.make_tensor("k", TensorProto.INT64, [1], [5])],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=10)
    agrees(model, build_model(lower(imported(model), host), {}, guess=True))


@pytest.mark.parametrize("length", [5, 150, 197])
def test_softmax_and_norms_agree_whatever_the_length_of_a_line(
    length: int,
    imported: Callable[[Any], ImportedModel],
    host: TargetSpec,
    agrees: Callable[[Any, CompiledModel], None],
) -> None:
    nodes = [
        helper.make_node("Softmax", ["x"], ["s"], axis=-1),
        helper.make_node("LayerNormalization", ["s", "scale"], ["y"], axis=-1),
    ]
    graph = helper.make_graph(
        nodes,
        "net",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, (2, 3, length))],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, (2, 3, length))],
        [helper.make_tensor("scale", TensorProto.FLOAT, [length], [1.5] * length)],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=10)
    agrees(model, build_model(lower(imported(model), host), {}, guess=True))
