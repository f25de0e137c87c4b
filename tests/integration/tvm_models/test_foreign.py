"""What TVM can't take of a graph runs in ONNX Runtime, and everything else in TVM."""

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from tuneloom.compiler.target import TargetSpec
from tuneloom.errors import ModelError
from tuneloom.joining import run_py
from tuneloom.tuners.tvm.importing.onnx.crossing import require_tensors
from tuneloom.tuners.tvm.importing.sources import ImportedModel, import_model
from tuneloom.tuners.tvm.lowering.graph import lower
from tuneloom.tuners.tvm.lowering.tasks import extract
from tuneloom.tuners.tvm.models.compiling.building import build_model
from tuneloom.tuners.tvm.models.compiling.compiled import load_compiled, part_file
from tuneloom.tuners.tvm.models.compiling.facts import target_facts
from tuneloom.tuners.tvm.models.compiling.kernel_times import foreign_shares

Runtime = Callable[[Any, list[Any]], list[Any]]


def determinants() -> Any:
    """Two determinants side by side, one of them between operators that TVM takes."""
    nodes = [
        helper.make_node("Relu", ["x"], ["a"]),
        helper.make_node("Det", ["a"], ["d"]),
        helper.make_node("Exp", ["d"], ["e"]),
        helper.make_node("Det", ["x"], ["f"], name="second"),
        helper.make_node("Add", ["e", "f"], ["y"]),
    ]
    entry = helper.make_tensor_value_info("x", TensorProto.FLOAT, (4, 3, 3))
    result = helper.make_tensor_value_info("y", TensorProto.FLOAT, None)
    graph = helper.make_graph(nodes, "net", [entry], [result])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def values() -> Any:
    return np.random.default_rng(2).standard_normal((4, 3, 3)).astype(np.float32)


def test_a_graph_with_an_operator_tvm_lacks_runs_and_says_so(
    imported: Callable[[Any], ImportedModel], host: TargetSpec, runtime: Runtime
) -> None:
    model = imported(determinants())
    assert [part.operators for part in model.foreign] == [("Det",), ("Det",)]
    assert any("ONNX Runtime runs Det" in note for note in model.notes)
    lowered = lower(model, host)
    assert extract(lowered)
    compiled = build_model(lowered, {})
    (got,) = compiled.open().run([values()])
    np.testing.assert_allclose(got, runtime(determinants(), [values()])[0], rtol=1e-4)
    shares = foreign_shares(compiled, [values()])
    assert set(shares) == {part.function for part in model.foreign}
    assert all(0 < share < 1 for share in shares.values())


def test_parts_travel_with_the_bundle_and_its_runner(
    imported: Callable[[Any], ImportedModel], host: TargetSpec, runtime: Runtime, tmp_path: Path
) -> None:
    compiled = build_model(lower(imported(determinants()), host), {})
    compiled.export(tmp_path)
    parts = [
        {"function": part.function, "file": part_file(number, part), "operators": list(part.operators)}
        for number, part in enumerate(compiled.foreign)
    ]
    expected = runtime(determinants(), [values()])[0]
    loaded = load_compiled(tmp_path, compiled.inputs, compiled.outputs, parts)
    np.testing.assert_allclose(loaded.open().run([values()])[0], expected, rtol=1e-4)
    manifest = {
        "target": target_facts(host),
        "inputs": [{"name": "x", "shape": [4, 3, 3], "dtype": "float32"}],
        "outputs": [{"name": "y", "shape": [4], "dtype": "float32"}],
        "onnxruntime": parts,
    }
    (tmp_path / "bundle.json").write_text(json.dumps(manifest))
    (tmp_path / "run.py").write_text(run_py())
    np.save(tmp_path / "x.npy", values())
    words = ["run.py", "--input", "x.npy", "--output", "y.npy"]
    subprocess.run([sys.executable, *words], cwd=tmp_path, check=True)
    np.testing.assert_allclose(np.load(tmp_path / "y.npy"), expected, rtol=1e-4)


def test_only_tvm_refuses_with_the_node(tmp_path: Path) -> None:
    path = tmp_path / "net.onnx"
    path.write_bytes(determinants().SerializeToString())
    with pytest.raises(ModelError, match="operator Det"):
        import_model(str(path), only_tvm=True)


def test_neighbours_are_one_part_and_never_wait_for_themselves(
    imported: Callable[[Any], ImportedModel], host: TargetSpec
) -> None:
    nodes = [
        helper.make_node("MatMul", ["x", "x"], ["a"]),
        helper.make_node("Det", ["a"], ["d"]),
        helper.make_node("CumProd", ["d", "axis"], ["p"]),
        helper.make_node("MatMul", ["matrix", "p"], ["q"]),
        helper.make_node("CumProd", ["q", "axis"], ["r"]),
        helper.make_node("Exp", ["r"], ["s"]),
        helper.make_node("CumProd", ["s", "axis"], ["y"]),
    ]
    graph = helper.make_graph(
        nodes,
        "net",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, (4, 3, 3))],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
        [
            helper.make_tensor("axis", TensorProto.INT64, (), [0]),
            helper.make_tensor("matrix", TensorProto.FLOAT, (4, 4), [1.0] * 16),
        ],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 26)], ir_version=10)
    parts = [part.operators for part in imported(model).foreign]
    # A product is worth going back to TVM for, four exponentials are not.
    assert parts == [("Det", "CumProd"), ("CumProd", "Exp")]


def graph_of(nodes: list[Any], outputs: list[Any], constants: dict[str, Any] | None = None) -> Any:
    """A model of one input x of 4×3×3 numbers."""
    entry = helper.make_tensor_value_info("x", TensorProto.FLOAT, (4, 3, 3))
    tensors = [numpy_helper.from_array(np.asarray(value), name) for name, value in (constants or {}).items()]
    graph = helper.make_graph(nodes, "net", [entry], outputs, tensors)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def plain_output(name: str, kind: int = TensorProto.FLOAT) -> Any:
    return helper.make_tensor_value_info(name, kind, None)


def places_and_values() -> Any:
    """Where a product is positive, which nobody knows beforehand, what it is there, and all of it."""
    nodes = [
        helper.make_node("MatMul", ["x", "x"], ["p"]),
        helper.make_node("Greater", ["p", "zero"], ["positive"]),
        helper.make_node("NonZero", ["positive"], ["places"]),
        helper.make_node("Transpose", ["places"], ["rows"], perm=[1, 0]),
        helper.make_node("GatherND", ["p", "rows"], ["found"]),
        helper.make_node("Exp", ["found"], ["y"]),
        helper.make_node("Tanh", ["p"], ["whole"]),
        helper.make_node("TopK", ["y", "two"], ["best", "best_places"]),
        helper.make_node("Add", ["best", "best"], ["twice"]),
    ]
    outputs = [plain_output("rows", TensorProto.INT64), *map(plain_output, ("y", "whole", "twice"))]
    return graph_of(nodes, outputs, {"zero": np.float32(0), "two": np.array([2])})


def test_shapes_that_depend_on_data_belong_to_the_other_runtime(
    imported: Callable[[Any], ImportedModel], host: TargetSpec, runtime: Runtime
) -> None:
    model = imported(places_and_values())
    assert [info.shape for info in model.outputs] == [(-1, 3), (-1,), (4, 3, 3), (-1,)]
    assert {kind for part in model.foreign for kind in part.operators} >= {"NonZero", "GatherND", "TopK"}
    opened = build_model(lower(model, host), {}).open()
    for seed in (2, 5):
        x = np.random.default_rng(seed).standard_normal((4, 3, 3)).astype(np.float32)
        for got, expected in zip(opened.run([x]), runtime(places_and_values(), [x]), strict=True):
            np.testing.assert_allclose(got, expected, rtol=1e-4, atol=1e-5)


def test_what_only_the_other_runtime_can_hold_never_leaves_it(
    imported: Callable[[Any], ImportedModel], host: TargetSpec, runtime: Runtime
) -> None:
    nodes = [
        helper.make_node("MatMul", ["x", "x"], ["p"]),
        helper.make_node("Cast", ["p"], ["text"], to=TensorProto.STRING),
        helper.make_node("Relu", ["p"], ["q"]),
        helper.make_node("Det", ["q"], ["d"]),
        helper.make_node("Cast", ["text"], ["back"], to=TensorProto.FLOAT),
        helper.make_node("Add", ["back", "q"], ["y"]),
    ]
    model = graph_of(nodes, [plain_output("y"), plain_output("d")])
    found = imported(model)
    assert ("Cast",) in [part.operators for part in found.foreign]
    got = build_model(lower(found, host), {}).open().run([values()])
    for ours, theirs in zip(got, runtime(model, [values()]), strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-3, atol=1e-5)


def test_a_branch_that_must_stay_one_runs_in_the_other_runtime(
    imported: Callable[[Any], ImportedModel], host: TargetSpec, runtime: Runtime
) -> None:
    branches = {}
    for name, axes in (("then_branch", [0, 1]), ("else_branch", [0])):
        inner = helper.make_node("ReduceSum", ["p", f"axes_{name}"], [name], keepdims=0)
        axis = numpy_helper.from_array(np.array(axes), f"axes_{name}")
        branches[name] = helper.make_graph([inner], name, [], [plain_output(name)], [axis])
    nodes = [
        helper.make_node("MatMul", ["x", "x"], ["p"]),
        helper.make_node("ReduceSum", ["p"], ["all"], keepdims=0),
        helper.make_node("Greater", ["all", "zero"], ["condition"]),
        helper.make_node("If", ["condition"], ["y"], **branches),
    ]
    model = graph_of(nodes, [plain_output("y")], {"zero": np.float32(0)})
    found = imported(model)
    assert [part.operators for part in found.foreign] == [("If",)]
    opened = build_model(lower(found, host), {}).open()
    for x in (values(), -values()):
        np.testing.assert_allclose(opened.run([x])[0], runtime(model, [x])[0], rtol=1e-4, atol=1e-5)


def test_an_output_that_is_no_tensor_of_numbers_is_named(imported: Callable[[Any], ImportedModel]) -> None:
    nodes = [helper.make_node("Cast", ["x"], ["text"], to=TensorProto.STRING)]
    with pytest.raises(ModelError, match="output 'text' is not a tensor of numbers"):
        imported(graph_of(nodes, [plain_output("text", TensorProto.STRING)]))


def test_an_output_of_a_type_that_bundles_do_not_return_is_named() -> None:
    kind = helper.make_tensor_type_proto(TensorProto.FLOAT8E5M2, (1, 3))
    with pytest.raises(ModelError, match="output 'tiny' has the type float8_e5m2, which bundles don't"):
        require_tensors(["tiny"], {"tiny": kind}, "output", "net.onnx")


def test_a_node_that_fails_a_trial_goes_to_the_other_runtime(tmp_path: Path) -> None:
    path = tmp_path / "net.onnx"
    path.write_bytes(determinants().SerializeToString())

    def no_exponentials(module: Any) -> None:
        if "relax.exp" in str(module) or "R.exp" in str(module):
            raise RuntimeError("no exponentials here")

    parts = import_model(str(path), trial=no_exponentials).foreign
    assert [part.operators for part in parts] == [("Det", "Exp"), ("Det",)]


def test_shapes_behind_an_operator_of_another_domain_are_known(
    imported: Callable[[Any], ImportedModel],
) -> None:
    nodes = [
        helper.make_node("Scaler", ["x"], ["s"], domain="ai.onnx.ml", offset=[0.5], scale=[2.0]),
        helper.make_node("MatMul", ["s", "s"], ["y"]),
    ]
    entry = helper.make_tensor_value_info("x", TensorProto.FLOAT, (3, 3))
    graph = helper.make_graph(nodes, "net", [entry], [plain_output("y")])
    domains = [helper.make_opsetid("", 17), helper.make_opsetid("ai.onnx.ml", 3)]
    model = imported(helper.make_model(graph, opset_imports=domains, ir_version=8))
    assert [part.operators for part in model.foreign] == [("Scaler",)]
    assert model.outputs[0].shape == (3, 3)


def test_a_part_has_the_oldest_version_in_which_it_means_the_same(
    imported: Callable[[Any], ImportedModel],
) -> None:
    nodes = [helper.make_node("Relu", ["x"], ["r"]), helper.make_node("Det", ["r"], ["y"])]
    graph = helper.make_graph(
        nodes, "net", [helper.make_tensor_value_info("x", TensorProto.FLOAT, (3, 3))], [plain_output("y")]
    )
    newest = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)
    (part,) = imported(newest).foreign
    assert [one.version for one in onnx.load_model_from_string(part.content).opset_import] == [11]


def test_what_neither_runtime_runs_is_said_in_one_line(imported: Callable[[Any], ImportedModel]) -> None:
    node = helper.make_node("Anything", ["x"], ["y"], domain="nobody.knows")
    graph = helper.make_graph(
        [node], "net", [helper.make_tensor_value_info("x", TensorProto.FLOAT, (3, 3))], [plain_output("y")]
    )
    domains = [helper.make_opsetid("", 17), helper.make_opsetid("nobody.knows", 1)]
    with pytest.raises(
        ModelError, match=r"net\.onnx: neither TVM nor ONNX Runtime runs operator \S*Anything \(.*\): [^\n]+$"
    ):
        imported(helper.make_model(graph, opset_imports=domains, ir_version=8))
