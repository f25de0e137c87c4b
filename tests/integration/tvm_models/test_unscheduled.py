"""A schedule that TVM can't compile costs that schedule: the model runs, and is right."""

from typing import Any

import numpy as np
import pytest
from onnx import TensorProto, helper

from tuneloom.compiler import lazy
from tuneloom.errors import ModelError
from tuneloom.tuners.tvm.lowering.graph import LoweredModel, lower
from tuneloom.tuners.tvm.lowering.payloads import trace_text
from tuneloom.tuners.tvm.lowering.tasks import kernel_key, kernel_module
from tuneloom.tuners.tvm.models.compiling.building import build_model

SIZE = [62, 95]
"""Not a whole number of vectors, so that a schedule in vectors has to treat the last places apart."""


@pytest.fixture
def places(imported: Any, host: Any) -> LoweredModel:
    """Where each line has its largest value: a reduction with two results, the place and the value."""
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, SIZE)
    y = helper.make_tensor_value_info("y", TensorProto.INT64, SIZE[:1])
    node = helper.make_node("ArgMax", ["x"], ["y"], axis=1, keepdims=0)
    graph = helper.make_graph([node], "places", [x], [y])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)
    return lower(imported(model), host)


def check(compiled: Any) -> None:
    values = np.random.default_rng(0).normal(size=SIZE).astype(np.float32)
    (found,) = compiled.open().run([values])
    assert np.array_equal(found, values.argmax(axis=1))


def partitioned(function: Any) -> str:
    """A trace that repeats a block whose variables TVM then sees defined twice."""
    from tvm.s_tir import Schedule

    module = kernel_module(function)  # held, or TVM would change the model's kernel
    schedule = Schedule(module)
    line = schedule.get_loops(schedule.get_child_blocks(schedule.get_sblock("root"))[0])[0]
    schedule.loop_partition(line, [60, None])
    return trace_text(schedule.trace)


def test_a_reduction_with_two_results_is_compiled_by_the_first_guess(places: LoweredModel) -> None:
    check(build_model(places, {}, guess=True))


def test_a_schedule_that_cannot_be_compiled_is_left_out_and_named(places: LoweredModel) -> None:
    (function,) = (f for g, f in places.module.functions.items() if "argmax" in g.name_hint)
    key = kernel_key(function, places.target)
    compiled = build_model(places, {key: partitioned(function)})
    assert compiled.unscheduled.keys() == {key} and "Trying to update var" in compiled.unscheduled[key]
    check(compiled)


def test_a_trace_that_does_not_fit_is_left_out_and_named(places: LoweredModel) -> None:
    (function,) = (f for g, f in places.module.functions.items() if "argmax" in g.name_hint)
    key = kernel_key(function, places.target)
    compiled = build_model(places, {key: '[[["GetSBlock", [], ["nowhere", "main"], ["b0"]]], []]'})
    assert "does not fit" in compiled.unscheduled[key]
    check(compiled)


def test_what_tvm_says_of_a_model_it_cannot_compile_is_one_short_line(
    places: LoweredModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_arguments: object, **_options: object) -> None:
        raise RuntimeError("Traceback\n" + 999 * "x" + "\nCheck failed: (a == b) is false: no such pass")

    monkeypatch.setattr(lazy.relax, "build", refuse)
    with pytest.raises(ModelError, match=r"^TVM can't compile net: no such pass$"):
        build_model(places, {}, guess=True)
