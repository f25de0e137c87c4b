"""Schedules look up a kernel's steps by name, so the same kernel has the same names in every model."""

from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from onnx import TensorProto, helper

from tuneloom.backends.resolving import resolve_target
from tuneloom.tuners.tvm.importing.sources import import_model
from tuneloom.tuners.tvm.lowering.graph import LoweredModel, lower
from tuneloom.tuners.tvm.lowering.payloads import trace_text
from tuneloom.tuners.tvm.lowering.tasks import kernel_key, kernel_module
from tuneloom.tuners.tvm.models.compiling.building import build_model
from tuneloom.tuners.tvm.models.compiling.kernels import scheduled

SIZE = [6, 7]
"""Lines too short for a kernel of ours, so that the sum is TVM's own."""


def network(folder: Path, before: int) -> LoweredModel:
    """The sum of each line, after so many steps that can't be fused with it."""
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, SIZE)
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, [SIZE[0]])
    names = ["x", *(f"t{i}" for i in range(before))]
    nodes = [helper.make_node("CumSum", [a, "axis"], [b]) for a, b in pairwise(names)]
    nodes.append(helper.make_node("ReduceSum", [names[-1], "lines"], ["y"], keepdims=0))
    axis = helper.make_tensor("axis", TensorProto.INT64, [], [0])
    lines = helper.make_tensor("lines", TensorProto.INT64, [1], [1])
    graph = helper.make_graph(nodes, "net", [x], [y], [axis, lines])
    path = folder / f"net{before}.onnx"
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 14)], ir_version=8)
    path.write_bytes(model.SerializeToString())
    return lower(import_model(str(path)), resolve_target("cpu"))


def reduction(lowered: LoweredModel) -> Any:
    """The kernel that sums."""
    (found,) = (f for g, f in lowered.module.functions.items() if g.name_hint.startswith("sum"))
    return found


def halves(function: Any) -> str:
    """A schedule that does six lines in three steps of two."""
    from tvm.s_tir import Schedule

    module = kernel_module(function)
    schedule = Schedule(module)
    line, _ = schedule.get_loops(schedule.get_sblock("reduced"))
    schedule.split(line, [3, 2])
    return trace_text(schedule.trace)


def test_a_schedule_of_one_models_reduction_fits_anothers(tmp_path: Path) -> None:
    first, second = (network(tmp_path, before) for before in (0, 2))
    key = kernel_key(reduction(second), second.target)
    assert kernel_key(reduction(first), first.target) == key
    model = build_model(second, {key: halves(reduction(first))}).open()
    values = np.random.default_rng(0).normal(size=SIZE).astype(np.float32)
    (result,) = model.run([values])
    np.testing.assert_allclose(result, values.cumsum(0).cumsum(0).sum(1), rtol=1e-4, atol=1e-4)


def test_a_kernel_that_is_scheduled_for_a_bundle_stays_as_it_is_in_the_model(tmp_path: Path) -> None:
    lowered = network(tmp_path, 0)
    before = reduction(lowered).script()
    for _ in range(2):
        assert scheduled(reduction(lowered), halves(reduction(lowered)), lowered.target).script() != before
        assert reduction(lowered).script() == before
