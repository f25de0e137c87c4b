"""Kernels that go line by line agree with ONNX Runtime, also where lines don't fill vectors."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from onnx import TensorProto, helper

from support.models.graphs import model_of
from tuneloom.backends.resolving import resolve_target
from tuneloom.compiler.target import TargetSpec
from tuneloom.tuners.tvm.importing.sources import ImportedModel
from tuneloom.tuners.tvm.lowering.graph import lower
from tuneloom.tuners.tvm.models.compiling.building import build_model
from tuneloom.tuners.tvm.models.compiling.compiled import CompiledModel


def test_a_kernel_without_loops_is_compiled_as_it_is(
    imported: Callable[[Any], ImportedModel], host: TargetSpec, agrees: Callable[[Any, CompiledModel], None]
) -> None:
    best = helper.make_node("TopK", ["x", "k"], ["y", "places"])
    model = model_of([best], {"x": (4, 20)}, {"y": (4, 5)}, {"k": np.array([5])})
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
    shape, scale = (2, 3, length), np.full(length, 1.5, np.float32)
    model = model_of(nodes, {"x": shape}, {"y": shape}, {"scale": scale})
    agrees(model, build_model(lower(imported(model), host), {}, guess=True))


REDUCTIONS = ("ReduceSum", "ReduceMean", "ReduceMax", "ReduceMin")


@pytest.mark.parametrize("keepdims", [0, 1])
@pytest.mark.parametrize(
    ("shape", "axes"),
    [((3, 5), [-1]), ((4, 64), [-1]), ((2, 6, 508), [-1]), ((2, 9, 23), [-2, -1]), ((2, 40, 3), [1])],
)
def test_sums_and_extremes_of_lines_agree_whatever_their_length(
    shape: tuple[int, ...],
    axes: list[int],
    keepdims: int,
    imported: Callable[[Any], ImportedModel],
    host: TargetSpec,
    agrees: Callable[[Any, CompiledModel], None],
) -> None:
    model = reductions(shape, axes, keepdims)
    agrees(model, build_model(lower(imported(model), host), {}, guess=True))


def test_the_largest_value_of_a_long_line_is_found_in_vectors(
    imported: Callable[[Any], ImportedModel], host: TargetSpec
) -> None:
    model = lower(imported(reductions((2, 6, 508), [-1], 0)), host)
    kernels = [gvar.name_hint for gvar in model.module.get_global_vars()]
    assert {"line_sum", "line_mean", "line_max", "line_min"} <= set(kernels)


def test_threads_of_a_gpu_can_share_every_reduction(imported: Callable[[Any], ImportedModel]) -> None:
    from tvm.s_tir import Schedule
    from tvm.tirx import PrimFunc

    gpu = resolve_target('{"kind": "cuda", "arch": "sm_90"}')
    module = lower(imported(reductions((2, 6, 508), [-1], 0)), gpu).module
    kernels = [function for function in module.functions.values() if isinstance(function, PrimFunc)]
    reducing = [kernel for kernel in kernels if "T.init()" in kernel.script()]
    assert len(reducing) == len(REDUCTIONS)
    for kernel in reducing:
        schedule = Schedule(kernel)
        first, *_ = schedule.get_child_blocks(schedule.get_sblock("root"))
        _, part = schedule.split(schedule.get_loops(first)[-1], [None, 4])
        schedule.rfactor(part, 0)  # refuses what begins with another number than TVM's own


@pytest.mark.parametrize("length", [5, 64])
def test_the_largest_of_nothing_but_minus_infinity_is_that(
    length: int, imported: Callable[[Any], ImportedModel], host: TargetSpec
) -> None:
    largest = helper.make_node("ReduceMax", ["x"], ["y"], axes=[1], keepdims=0)
    model = model_of([largest], {"x": (2, length)}, {"y": (2,)})
    compiled = build_model(lower(imported(model), host), {}, guess=True)
    lines = np.full((2, length), -np.inf, np.float32)
    lines[1, 3] = -7.0
    assert compiled.open().run([lines])[0].tolist() == [-np.inf, -7.0]


def reductions(shape: tuple[int, ...], axes: list[int], keepdims: int) -> Any:
    """Every kind of reduction of one tensor, after a step that is computed with it."""
    nodes = [helper.make_node("Tanh", ["x"], ["t"])]
    nodes += [helper.make_node(kind, ["t", "axes"], [kind], keepdims=keepdims) for kind in REDUCTIONS]
    graph = helper.make_graph(
        nodes,
        "net",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)],
        [helper.make_tensor_value_info(kind, TensorProto.FLOAT, None) for kind in REDUCTIONS],
        [helper.make_tensor("axes", TensorProto.INT64, [len(axes)], axes)],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=10)
