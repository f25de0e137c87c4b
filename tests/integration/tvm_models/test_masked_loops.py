"""Loops that Keras writes for an LSTM with a mask are one kernel; loops that only look like one are not."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper

from tuneloom.compiler.target import TargetSpec
from tuneloom.tuners.tvm.importing.onnx.cleaning.assembling import assembled
from tuneloom.tuners.tvm.importing.onnx.graphs import cleaned
from tuneloom.tuners.tvm.importing.sources import ImportedModel
from tuneloom.tuners.tvm.lowering.graph import lower
from tuneloom.tuners.tvm.models.compiling.building import build_model

Runtime = Callable[[Any, list[Any]], list[Any]]
STEPS, BATCH, WIDTH, HIDDEN = 5, 2, 3, 4


def step(*, splits: tuple[str, ...] = ("i", "f", "g", "o")) -> Any:
    """The body of the loop: a turn, the last output, state and memory, how many turns, and what stays."""
    make = helper.make_node

    def chosen(fresh: str, old: str, to: str) -> list[Any]:
        return [
            make("Not", ["m"], [f"{to}_not"]),
            make("Cast", [f"{to}_not"], [f"{to}_left"], to=TensorProto.FLOAT),
            make("Cast", ["m"], [f"{to}_kept"], to=TensorProto.FLOAT),
            make("Mul", [old, f"{to}_left"], [f"{to}_old"]),
            make("Mul", [f"{to}_kept", fresh], [f"{to}_new"]),
            make("Add", [f"{to}_new", f"{to}_old"], [to]),
        ]

    nodes = [
        make("Add", ["t", "one"], ["t1"]),
        make("Gather", ["mask", "t"], ["m"]),
        make("Gather", ["x", "t"], ["xt"]),
        make("MatMul", ["h", "r_in"], ["hr"]),
        make("MatMul", ["xt", "w_in"], ["xw"]),
        make("Add", ["xw", "hr"], ["both"]),
        make("Add", ["both", "b_in"], ["sums"]),
        make("Split", ["sums"], list(splits), axis=1),
        make("Tanh", ["g"], ["g1"]),
        *(make("Sigmoid", [gate], [f"{gate}1"]) for gate in ("o", "f", "i")),
        make("Mul", ["f1", "c"], ["old"]),
        make("Mul", ["i1", "g1"], ["new"]),
        make("Add", ["old", "new"], ["memory"]),
        make("Tanh", ["memory"], ["bent"]),
        make("Mul", ["o1", "bent"], ["state"]),
        *chosen("state", "zeros_in", "y"),
        make("Identity", ["y"], ["each"]),
        *chosen("state", "h", "h1"),
        *chosen("memory", "c", "c1"),
        make("Cast", ["turns_in"], ["end"], to=TensorProto.FLOAT),
        make("Cast", ["t1"], ["now"], to=TensorProto.FLOAT),
        make("Less", ["now", "end"], ["going"]),
    ]
    numbers, state = (TensorProto.INT32, ()), (TensorProto.FLOAT, (BATCH, HIDDEN))
    carried = {
        "t": numbers,
        "y0": state,
        "h": state,
        "c": state,
        "turns_in": numbers,
        "w_in": (TensorProto.FLOAT, (WIDTH, 4 * HIDDEN)),
        "r_in": (TensorProto.FLOAT, (HIDDEN, 4 * HIDDEN)),
        "b_in": (TensorProto.FLOAT, (4 * HIDDEN,)),
        "zeros_in": state,
    }
    inputs = {"counter": (TensorProto.INT64, ()), "before": (TensorProto.BOOL, ()), **carried}
    stays = {name: kind for name, kind in carried.items() if name.endswith("_in")}
    made = {"going": (TensorProto.BOOL, ()), "t1": numbers, "y": state, "h1": state, "c1": state}
    return helper.make_graph(
        nodes,
        "step",
        [helper.make_tensor_value_info(name, *kind) for name, kind in inputs.items()],
        [
            helper.make_tensor_value_info(name, *kind)
            for name, kind in {**made, **stays, "each": state}.items()
        ],
        [numpy_helper.from_array(np.array(1, dtype=np.int32), "one")],
    )


def network(body: Any, *, zeros: float = 0.0, turns: int = STEPS) -> Any:
    """A sequence and numbers whose positive ones are the mask; all states, and the last state and memory."""
    random = np.random.default_rng(3)

    def values(*shape: int) -> Any:
        return random.standard_normal(shape).astype(np.float32)

    constants = {
        "w": values(WIDTH, 4 * HIDDEN),
        "r": values(HIDDEN, 4 * HIDDEN),
        "b": values(4 * HIDDEN),
        "zeros": np.full((BATCH, HIDDEN), zeros, dtype=np.float32),
        "first": np.array(0, dtype=np.int32),
        "turns": np.array(turns, dtype=np.int32),
        "true": np.array(True),
        "nothing": np.array(0, dtype=np.float32),
    }
    carried = ["first", "zeros", "h0", "c0", "turns", "w", "r", "b", "zeros"]
    last = ("t", "y", "h", "c", "turns", "w", "r", "b", "zeros")
    outputs = [*(f"{name}_last" for name in last), "y_all"]
    nodes = [
        helper.make_node("Greater", ["numbers", "nothing"], ["mask"]),
        helper.make_node("Loop", ["", "true", *carried], outputs, body=body),
    ]
    state, wanted = (BATCH, HIDDEN), ("y_all", "h_last", "c_last", "y_last")
    shapes = {"x": (STEPS, BATCH, WIDTH), "numbers": (STEPS, BATCH, 1), "h0": state, "c0": state}
    graph = helper.make_graph(
        nodes,
        "net",
        [helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name, shape in shapes.items()],
        [helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in wanted],
        [numpy_helper.from_array(value, name) for name, value in constants.items()],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 15)], ir_version=8)


def given() -> list[Any]:
    random = np.random.default_rng(5)
    state = (BATCH, HIDDEN)
    shapes = ((STEPS, BATCH, WIDTH), (STEPS, BATCH, 1), state, state)
    return [random.standard_normal(shape).astype(np.float32) for shape in shapes]


MASKED = network(step())
OTHERS = {
    "a step left out gives something": network(step(), zeros=0.5),
    "the last step is never taken": network(step(), turns=STEPS - 1),
    "gates have another order": network(step(splits=("i", "g", "f", "o"))),
}


def test_the_loop_is_one_scan() -> None:
    kinds = [node.op_type for node in cleaned(MASKED, "net", {}).nodes]
    assert kinds.count("Scan") == 1
    assert "Loop" not in kinds
    assert "Sigmoid" not in kinds


def test_it_is_one_kernel_that_agrees_with_the_loop(
    imported: Callable[[Any], ImportedModel], host: TargetSpec, runtime: Runtime
) -> None:
    lowered = lower(imported(MASKED), host)
    assert sum("lstm" in variable.name_hint for variable in lowered.module.get_global_vars()) == 1
    got = build_model(lowered, {}, guess=True).open().run(given())
    for ours, theirs in zip(got, runtime(MASKED, given()), strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-4, atol=2e-6)


def test_another_runtime_runs_the_scan_as_it_is(
    imported: Callable[[Any], ImportedModel], host: TargetSpec, runtime: Runtime
) -> None:
    written = assembled(cleaned(MASKED, "net", {}))
    expected = runtime(MASKED, given())
    for ours, theirs in zip(runtime(written, given()), expected, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-4, atol=2e-6)
    again = build_model(lower(imported(written), host), {}, guess=True).open().run(given())
    for ours, theirs in zip(again, expected, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-4, atol=2e-6)


@pytest.mark.parametrize("model", OTHERS.values(), ids=OTHERS.keys())
def test_a_loop_that_differs_is_unrolled_and_agrees(
    model: Any, imported: Callable[[Any], ImportedModel], host: TargetSpec, runtime: Runtime
) -> None:
    assert "Scan" not in [node.op_type for node in cleaned(model, "net", {}).nodes]
    got = build_model(lower(imported(model), host), {}, guess=True).open().run(given())
    for ours, theirs in zip(got, runtime(model, given()), strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-4, atol=2e-6)
