"""Schedules look up a kernel's steps by name, so the same kernel has the same names in every model."""

from itertools import pairwise
from pathlib import Path

import numpy as np
from onnx import TensorProto, helper

from tuneloom.tuners.tvm.importing.sources import import_model
from tuneloom.tuners.tvm.lowering.graph import LoweredModel, lower
from tuneloom.tuners.tvm.lowering.payloads import trace_text
from tuneloom.tuners.tvm.lowering.tasks import kernel_key
from tuneloom.tuners.tvm.models.final import build_model, scheduled
from tuneloom.tuners.tvm.targets.target import resolve_target

SIZE = [6, 40]


def network(folder: Path, before: int) -> LoweredModel:
    """The largest of each line, after so many steps that can't be fused with it."""
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, SIZE)
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, [SIZE[0]])
    names = ["x", *(f"t{i}" for i in range(before))]
    nodes = [helper.make_node("CumSum", [a, "axis"], [b]) for a, b in pairwise(names)]
    nodes.append(helper.make_node("ReduceMax", [names[-1]], ["y"], axes=[1], keepdims=0))
    axis = helper.make_tensor("axis", TensorProto.INT64, [], [0])
    graph = helper.make_graph(nodes, "net", [x], [y], [axis])
    path = folder / f"net{before}.onnx"
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 14)], ir_version=8)
    path.write_bytes(model.SerializeToString())
    return lower(import_model(str(path)), resolve_target("cpu"))


def reduction(lowered: LoweredModel) -> object:
    """The kernel that takes the largest."""
    (found,) = (f for g, f in lowered.module.functions.items() if g.name_hint.startswith("max"))
    return found


def test_a_schedule_of_one_models_reduction_fits_anothers(tmp_path: Path) -> None:
    from tvm.s_tir import Schedule

    first, second = (network(tmp_path, before) for before in (0, 2))
    assert kernel_key(reduction(first), first.target) == kernel_key(reduction(second), second.target)
    schedule = Schedule(reduction(first))
    line, _ = schedule.get_loops(schedule.get_sblock("reduced"))
    schedule.split(line, [None, 2])
    text = trace_text(schedule.trace)
    assert scheduled(reduction(second), text) is not None
    model = build_model(second, {kernel_key(reduction(second), second.target): text}).open()
    values = np.random.default_rng(0).normal(size=SIZE).astype(np.float32)
    (result,) = model.run([values])
    np.testing.assert_allclose(result, values.cumsum(0).cumsum(0).max(1), rtol=1e-5)
