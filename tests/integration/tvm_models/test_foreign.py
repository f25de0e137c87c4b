"""What TVM can't take of a graph runs in ONNX Runtime, and everything else in TVM."""

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onnx import TensorProto, helper

from tuneloom.errors import ModelError
from tuneloom.tuners.tvm.bundles import runner
from tuneloom.tuners.tvm.importing.sources import ImportedModel, import_model
from tuneloom.tuners.tvm.lowering.graph import lower
from tuneloom.tuners.tvm.lowering.tasks import extract
from tuneloom.tuners.tvm.models.final import build_model, load_compiled, part_file
from tuneloom.tuners.tvm.models.kernel_times import foreign_shares
from tuneloom.tuners.tvm.targets.facts import target_facts
from tuneloom.tuners.tvm.targets.target import TargetSpec

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
    shares = foreign_shares(compiled, "cpu", [values()])
    assert set(shares) == {part.function for part in model.foreign}
    assert all(0 < share < 1 for share in shares.values())


def test_parts_travel_with_the_bundle_and_its_runner(
    imported: Callable[[Any], ImportedModel], host: TargetSpec, runtime: Runtime, tmp_path: Path
) -> None:
    compiled = build_model(lower(imported(determinants()), host), {})
    compiled.export(tmp_path)
    parts = [
        {"function": part.function, "file": part_file(number), "operators": list(part.operators)}
        for number, part in enumerate(compiled.foreign)
    ]
    expected = runtime(determinants(), [values()])[0]
    loaded = load_compiled(tmp_path, compiled.inputs, compiled.outputs, parts)
    np.testing.assert_allclose(loaded.open().run([values()])[0], expected, rtol=1e-4)
    manifest = {
        "target": target_facts(host.text),
        "inputs": [{"name": "x", "shape": [4, 3, 3], "dtype": "float32"}],
        "outputs": [{"name": "y", "shape": [4], "dtype": "float32"}],
        "onnxruntime": parts,
    }
    (tmp_path / "bundle.json").write_text(json.dumps(manifest))
    (tmp_path / "run.py").write_text(Path(runner.__file__).read_text())
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
        helper.make_node("Exp", ["p"], ["q"]),
        helper.make_node("CumProd", ["q", "axis"], ["y"]),
    ]
    graph = helper.make_graph(
        nodes,
        "net",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, (4, 3, 3))],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
        [helper.make_tensor("axis", TensorProto.INT64, (), [0])],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 26)], ir_version=10)
    parts = [part.operators for part in imported(model).foreign]
    assert parts == [("Det", "CumProd"), ("CumProd",)]
