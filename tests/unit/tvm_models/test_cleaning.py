"""What is known before a model runs is computed before TVM sees it."""

from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper, numpy_helper

from tuneloom.errors import ModelError
from tuneloom.tuners.tvm.importing.onnx.cleaning import CleanGraph, clean
from tuneloom.tuners.tvm.importing.onnx.cleaning.assembling import assembled

FLOAT, INT, BOOL = TensorProto.FLOAT, TensorProto.INT64, TensorProto.BOOL


def model(nodes: list[Any], shape: tuple[int | str, ...], constants: dict[str, Any], opset: int = 17) -> Any:
    tensors = [numpy_helper.from_array(np.asarray(value), name) for name, value in constants.items()]
    entry = helper.make_tensor_value_info("x", FLOAT, shape)
    result = helper.make_tensor_value_info("y", FLOAT, None)
    graph = helper.make_graph(nodes, "net", [entry], [result], tensors)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8)


def kinds(graph: CleanGraph) -> list[str]:
    """Operators in order, without those that only give an output its name."""
    return [node.op_type for node in graph.nodes if node.op_type != "Identity"]


def assert_same(original: Any, graph: CleanGraph, shape: tuple[int, ...]) -> None:
    x = np.random.default_rng(1).standard_normal(shape).astype(np.float32)
    sessions = [onnxruntime.InferenceSession(m.SerializeToString()) for m in (original, assembled(graph))]
    (expected,), (got,) = (session.run(None, {"x": x}) for session in sessions)
    np.testing.assert_array_equal(got, expected)


def body(nodes: list[Any], inputs: list[Any], outputs: list[Any]) -> Any:
    return helper.make_graph(nodes, "body", inputs, outputs)


def value(name: str, kind: int = FLOAT, shape: Any = None) -> Any:
    return helper.make_tensor_value_info(name, kind, shape)


def test_arithmetic_on_shapes_is_folded() -> None:
    nodes = [
        helper.make_node("Shape", ["x"], ["s"]),
        helper.make_node("Gather", ["s", "zero"], ["n"]),
        helper.make_node("Concat", ["n", "rest"], ["new"], axis=0),
        helper.make_node("Reshape", ["x", "new"], ["y"]),
    ]
    net = model(nodes, ("n", 2, 6), {"zero": np.array([0]), "rest": np.array([-1])})
    graph = clean(net, {"x": (3, 2, 6)}, "net")
    assert kinds(graph) == ["Reshape"]
    assert graph.shape("y") == (3, 12)
    assert_same(net, graph, (3, 2, 6))


def test_a_branch_that_depends_on_a_shape_is_taken_at_once() -> None:
    then = body([helper.make_node("Squeeze", ["x", "axis"], ["a"])], [], [value("a")])
    other = body([helper.make_node("Neg", ["x"], ["b"])], [], [value("b")])
    nodes = [
        helper.make_node("Shape", ["x"], ["s"]),
        helper.make_node("Gather", ["s", "axis"], ["n"]),
        helper.make_node("Equal", ["n", "one"], ["c"]),
        helper.make_node("If", ["c"], ["y"], then_branch=then, else_branch=other),
    ]
    net = model(nodes, ("n", 4), {"axis": np.array([0]), "one": np.array([1])})
    assert kinds(clean(net, {"x": (1, 4)}, "net")) == ["Squeeze"]
    assert kinds(clean(net, {"x": (2, 4)}, "net")) == ["Neg"]


def test_a_branch_that_depends_on_data_becomes_a_choice() -> None:
    then = body([helper.make_node("Exp", ["x"], ["a"])], [], [value("a")])
    other = body([helper.make_node("Neg", ["x"], ["a"])], [], [value("a")])
    nodes = [
        helper.make_node("ReduceSum", ["x"], ["t"], keepdims=0),
        helper.make_node("Greater", ["t", "zero"], ["c"]),
        helper.make_node("If", ["c"], ["y"], then_branch=then, else_branch=other),
    ]
    net = model(nodes, (2, 4), {"zero": np.array(0, dtype=np.float32)})
    graph = clean(net, {"x": (2, 4)}, "net")
    assert kinds(graph) == ["ReduceSum", "Greater", "Exp", "Neg", "Where"]
    assert_same(net, graph, (2, 4))


def test_a_branch_these_shapes_never_fit_leaves_the_other() -> None:
    then = body([helper.make_node("MatMul", ["x", "w"], ["a"])], [], [value("a")])
    other = body([helper.make_node("Neg", ["x"], ["b"])], [], [value("b")])
    nodes = [
        helper.make_node("ReduceSum", ["x"], ["t"], keepdims=0),
        helper.make_node("Greater", ["t", "zero"], ["c"]),
        helper.make_node("If", ["c"], ["y"], name="rate", then_branch=then, else_branch=other),
    ]
    constants = {"zero": np.array(0, dtype=np.float32), "w": np.ones((5, 4), dtype=np.float32)}
    graph = clean(model(nodes, (2, 4), constants), {"x": (2, 4)}, "net")
    assert kinds(graph) == ["Neg"]
    assert "rate" in graph.notes[0] and "else_branch" in graph.notes[0]


def loop(condition: list[Any]) -> Any:
    """Three turns at most of v = v + turn, whose intermediate values are stacked unless it may end early."""
    nodes = [
        *condition,
        helper.make_node("Cast", ["turn"], ["t"], to=FLOAT),
        helper.make_node("Add", ["v", "t"], ["w"]),
    ]
    inputs = [value("turn", INT, ()), value("going", BOOL, ()), value("v")]
    return body(nodes, inputs, [value("next", BOOL, ()), value("w")])


def test_a_loop_with_a_known_number_of_turns_is_unrolled() -> None:
    inner = loop([helper.make_node("Identity", ["going"], ["next"])])
    net = model(
        [helper.make_node("Loop", ["three", "yes", "x"], ["y"], body=inner)],
        (2,),
        {"three": np.array(3), "yes": np.array(True)},
    )
    graph = clean(net, {"x": (2,)}, "net")
    assert kinds(graph)[:3] == ["Add", "Add", "Add"]
    assert_same(net, graph, (2,))


def test_a_loop_that_would_become_thousands_of_nodes_stays_one() -> None:
    steps = [helper.make_node("Relu", ["v"], [f"r{n}"]) for n in range(20)]
    inner = loop([*steps, helper.make_node("Identity", ["going"], ["next"])])
    net = model(
        [helper.make_node("Loop", ["many", "yes", "x"], ["y"], body=inner)],
        (2,),
        {"many": np.array(300), "yes": np.array(True)},
    )
    graph = clean(net, {"x": (2,)}, "net")
    assert kinds(graph) == ["Loop"]
    assert_same(net, graph, (2,))


def test_a_bounded_loop_that_may_end_early_keeps_its_values_from_then_on() -> None:
    condition = [
        helper.make_node("ReduceMax", ["v"], ["m"], keepdims=0),
        helper.make_node("Less", ["m", "one"], ["next"]),
    ]
    net = model(
        [helper.make_node("Loop", ["three", "yes", "x"], ["y"], body=loop(condition))],
        (2,),
        {"three": np.array(3), "yes": np.array(True), "one": np.array(1, dtype=np.float32)},
    )
    graph = clean(net, {"x": (2,)}, "net")
    assert "Loop" not in kinds(graph)
    assert_same(net, graph, (2,))


@pytest.mark.parametrize("backwards", [0, 1])
def test_a_scan_is_unrolled(backwards: int) -> None:
    inner = body(
        [helper.make_node("Add", ["s", "e"], ["n"]), helper.make_node("Mul", ["n", "e"], ["o"])],
        [value("s", FLOAT, (3,)), value("e", FLOAT, (3,))],
        [value("n", FLOAT, (3,)), value("o", FLOAT, (3,))],
    )
    scan = helper.make_node(
        "Scan",
        ["zeros", "x"],
        ["last", "y"],
        body=inner,
        num_scan_inputs=1,
        scan_input_directions=[backwards],
        scan_output_directions=[backwards],
    )
    net = model([scan], (4, 3), {"zeros": np.zeros(3, dtype=np.float32)})
    graph = clean(net, {"x": (4, 3)}, "net")
    assert "Scan" not in kinds(graph)
    assert_same(net, graph, (4, 3))


def test_an_operator_defined_by_others_is_replaced_by_them() -> None:
    net = model([helper.make_node("Celu", ["x"], ["y"], alpha=2.0)], (5,), {})
    graph = clean(net, {"x": (5,)}, "net")
    assert "Celu" not in kinds(graph)
    assert kinds(clean(net, {"x": (5,)}, "net", {"Celu"})) == ["Celu"]


def test_equal_weights_are_kept_once() -> None:
    weight = np.ones((4, 4), dtype=np.float32)
    nodes = [helper.make_node("MatMul", ["x", "a"], ["h"]), helper.make_node("MatMul", ["h", "b"], ["y"])]
    graph = clean(model(nodes, (2, 4), {"a": weight, "b": weight}), {"x": (2, 4)}, "net")
    assert len(assembled(graph).graph.initializer) == 1


def test_shapes_that_contradict_the_graph_name_the_node() -> None:
    nodes = [helper.make_node("MatMul", ["x", "w"], ["y"], name="dense7")]
    net = model(nodes, (1, "n"), {"w": np.ones((4, 4), dtype=np.float32)})
    with pytest.raises(ModelError, match=r"'dense7' \(MatMul\) can't take inputs of the shapes 1×5, 4×4"):
        clean(net, {"x": (1, 5)}, "net")


def test_an_output_that_is_an_input_stays_an_output() -> None:
    net = model([helper.make_node("Identity", ["x"], ["y"])], (2,), {})
    graph = clean(net, {"x": (2,)}, "net")
    assert graph.outputs == ["y"]
    assert_same(net, graph, (2,))


def test_a_huge_constant_is_not_computed() -> None:
    nodes = [
        helper.make_node("ConstantOfShape", ["size"], ["z"]),
        helper.make_node("ReduceSum", ["z"], ["t"]),
    ]
    nodes.append(helper.make_node("Add", ["x", "t"], ["y"]))
    graph = clean(model(nodes, (1, 1, 1), {"size": np.array([1 << 20, 1 << 20, 4])}), {"x": (1, 1, 1)}, "net")
    assert kinds(graph) == ["ConstantOfShape", "ReduceSum", "Add"]
    assert isinstance(assembled(graph), onnx.ModelProto)


def test_shapes_that_are_too_small_for_a_window_are_refused_at_the_node() -> None:
    nodes = [helper.make_node("Conv", ["x", "w"], ["y"], name="first")]
    net = model(nodes, (1, 1, "n"), {"w": np.zeros((1, 1, 9), dtype=np.float32)})
    with pytest.raises(
        ModelError, match=r"node 'first' \(Conv\) can't take inputs of the shapes 1×1×4, 1×1×9"
    ):
        clean(net, {"x": (1, 1, 4)}, "net")


def test_an_operator_is_replaced_by_what_the_files_own_version_of_onnx_defines_it_by() -> None:
    net = model([helper.make_node("Softmax", ["x"], ["y"], axis=1)], (2, 3), {}, opset=18)
    graph = clean(net, {"x": (2, 3)}, "net")
    assert "ReduceMax" in kinds(graph)
    onnxruntime.InferenceSession(
        assembled(graph).SerializeToString()
    )  # refuses attributes of another version


@pytest.mark.parametrize("opset", [13, 21])
def test_weights_that_are_dequantised_are_known_with_the_whole_numbers_they_stand_for(opset: int) -> None:
    whole = np.array([[1, -128, 7], [127, 0, 5]], np.int8)
    steps = np.array([0.5, 0.25], np.float32)
    nodes = [
        helper.make_node("DequantizeLinear", ["w", "steps", "zeros"], ["real"], axis=0),
        helper.make_node("Transpose", ["real"], ["turned"]),
        helper.make_node("MatMul", ["x", "turned"], ["y"]),
    ]
    constants = {"w": whole, "steps": steps, "zeros": np.array([1, 0], np.int8)}
    graph = clean(model(nodes, (2, 3), constants, opset), {}, "net")
    assert kinds(graph) == ["MatMul"]
    found = graph.constants.rounded("turned")
    assert found is not None and found.whole.tolist() == [[0, 127], [-129, 0], [6, 5]]
    np.testing.assert_array_equal(graph.constants.array("turned"), found.whole * steps)
    assert graph.constants.rounded("x") is None
