"""Kernels that have no schedule get one that a GPU can run."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onnx import helper, save

from support.models.graphs import model_of
from tuneloom.backends.cuda.default_schedules import _shared_bytes
from tuneloom.backends.finding import backend_of
from tuneloom.backends.resolving import resolve_target
from tuneloom.compiler.lazy import s_tir, tirx, tvm
from tuneloom.compiler.statements import rebuilt
from tuneloom.tuners.tvm.importing.sources import import_model
from tuneloom.tuners.tvm.lowering.graph import lower

pytestmark = pytest.mark.integration
LENGTH, CHANNELS, WINDOW, GROUPS = 249, 64, 16, 4
MOST = 48 * 1024


def test_a_result_that_is_cut_is_not_kept_whole_in_shared_memory(tmp_path: Path) -> None:
    nodes = [
        helper.make_node(
            "Conv", ["x", "w", "b"], ["whole"], pads=[2, 2], group=GROUPS, kernel_shape=[WINDOW]
        ),
        helper.make_node("Slice", ["whole", "begin", "end", "axis"], ["y"]),
    ]
    rows = LENGTH + 4 - WINDOW + 1
    constants = {
        "w": np.ones((CHANNELS, CHANNELS // GROUPS, WINDOW), "float32"),
        "b": np.ones(CHANNELS, "float32"),
        "begin": np.array([0]),
        "end": np.array([-5]),  # more than the padding, so that the convolution can't be shorter
        "axis": np.array([2]),
    }
    x, y = {"x": (1, CHANNELS, LENGTH)}, {"y": (1, CHANNELS, rows - 5)}
    save(model_of(nodes, x, y, constants), tmp_path / "net.onnx")
    target = resolve_target('{"kind": "cuda", "arch": "sm_90"}')
    lowered = lower(import_model(str(tmp_path / "net.onnx")), target)
    scheduled = backend_of(target).default_module(lowered.module, target)
    assert rows * CHANNELS * 4 > MOST and "strided_slice" in lowered.module.script()
    assert "threadIdx.x" in scheduled.script() and _shared_bytes(scheduled) <= MOST


def test_what_follows_a_sum_of_one_term_is_added_once(tmp_path: Path) -> None:
    nodes = [
        helper.make_node("Conv", ["x", "w", "b"], ["scaled"], group=8, kernel_shape=[1, 1], strides=[2, 2]),
        helper.make_node("Add", ["scaled", "z"], ["sum"]),
        helper.make_node("Relu", ["sum"], ["y"]),
    ]
    rng = np.random.default_rng(0)
    weights, biases = rng.standard_normal((8, 1, 1, 1)), rng.standard_normal(8)
    constants = {"w": weights.astype("float32"), "b": biases.astype("float32")}
    image, other = (1, 8, 6, 6), (1, 8, 3, 3)
    save(model_of(nodes, {"x": image, "z": other}, {"y": other}, constants), tmp_path / "net.onnx")
    target = resolve_target('{"kind": "cuda", "arch": "sm_90"}')
    lowered = lower(import_model(str(tmp_path / "net.onnx")), target)
    (kernel,) = (one for name, one in lowered.module.functions.items() if "conv" in name.name_hint)
    scheduled = backend_of(target).default_module(tvm.IRModule({"kernel": kernel}), target)
    assert "threadIdx.x" in scheduled.script()
    shapes = [tuple(map(int, param.shape)) for param in kernel.params]
    values = [rng.standard_normal(shape).astype("float32") for shape in shapes]
    found = [run_in_turn(one, values) for one in (tvm.IRModule({"kernel": kernel}), scheduled)]
    np.testing.assert_allclose(found[1], found[0], rtol=1e-5, atol=1e-6)


def run_in_turn(module: Any, values: list[Any]) -> Any:
    """The output of a kernel, one thread after the other, on this CPU."""
    function = module["kernel"].with_attr("global_symbol", "kernel").without_attr("tirx.is_scheduled")
    serial = tirx.PrimFunc(function.params, in_turn(function.body), function.ret_type, function.attrs)
    tensors = [tvm.runtime.tensor(value) for value in values]
    tvm.compile(tvm.IRModule({"kernel": serial}), "llvm")["kernel"](*tensors)
    return tensors[-1].numpy()


def in_turn(statement: Any) -> Any:
    """A statement whose loops are bound to nothing."""
    match statement:
        case tirx.SeqStmt():
            return tirx.SeqStmt([in_turn(one) for one in statement.seq])
        case tirx.For():
            return tirx.For(
                statement.loop_var,
                statement.min,
                statement.extent,
                tirx.ForKind.SERIAL,
                in_turn(statement.body),
            )
        case s_tir.SBlockRealize():
            block = rebuilt(statement.block, body=in_turn(statement.block.body))
            return s_tir.SBlockRealize(statement.iter_values, statement.predicate, block)
    return statement
