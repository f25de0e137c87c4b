"""A tuned model beside other runtimes: same outputs, all timed, and nothing where there is nothing."""

from pathlib import Path
from typing import Any

import pytest

from tuneloom.compiler.target import TargetSpec
from tuneloom.errors import ModelError
from tuneloom.model import ModelRecipe
from tuneloom.tuners.tvm.importing.sources import import_model
from tuneloom.tuners.tvm.lowering.graph import lower
from tuneloom.tuners.tvm.models.compiling.building import build_model
from tuneloom.tuners.tvm.models.precision.samples import seeded_inputs
from tuneloom.tuners.tvm.models.rivals import turns
from tuneloom.tuners.tvm.models.rivals.turns import against_runtimes


@pytest.fixture
def compared(tmp_path: Path, host: TargetSpec) -> Any:
    """Compare a small model, from a file, with its own runtime."""
    from onnx import TensorProto, helper

    kind = TensorProto.FLOAT
    graph = helper.make_graph(
        [helper.make_node("Relu", ["x"], ["y"])],
        "net",
        [helper.make_tensor_value_info("x", kind, [4, 8])],
        [helper.make_tensor_value_info("y", kind, [4, 8])],
    )
    path = tmp_path / "net.onnx"
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=10)
    path.write_bytes(model.SerializeToString())
    compiled = build_model(lower(import_model(str(path)), host), {})
    recipe = ModelRecipe(key="net", source=str(path), shapes={}, target="cpu")

    def compare() -> Any:
        values = seeded_inputs(compiled.inputs, seed=0)
        return against_runtimes(recipe, compiled, compiled.open(), values, seconds=0.0)

    return compare


def test_both_are_timed_and_their_outputs_compared(compared: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(turns, "installed_rivals", lambda _model: ["onnxruntime"])
    found = compared()
    assert (found.name, found.difference) == ("onnxruntime", 0.0)
    assert len(found.seconds) == len(found.tuned_s) >= 5


def test_a_runtime_that_does_not_run_the_values_is_not_compared_with(
    compared: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refusing(*_arguments: Any) -> Any:
        def run(_values: Any) -> Any:
            raise RuntimeError("index out of range")

        return run

    monkeypatch.setattr(turns, "installed_rivals", lambda _model: ["onnxruntime"])
    monkeypatch.setattr(turns, "open_rival", refusing)
    assert compared() == "onnxruntime fails: index out of range"


def test_the_fastest_of_several_runtimes_counts_and_one_that_refuses_does_not(
    compared: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened = turns.open_rival

    def open_rival(name: str, *arguments: Any) -> Any:
        if name == "refusing":
            raise ModelError("refusing refuses it")
        return opened("onnxruntime", *arguments)

    monkeypatch.setattr(turns, "installed_rivals", lambda _model: ["slow", "refusing", "fast"])
    monkeypatch.setattr(turns, "open_rival", open_rival)
    monkeypatch.setattr(turns, "all_in_turn", lambda *_, **__: [[2.0], [3.0], [1.0]])
    found = compared()
    assert (found.name, found.seconds, found.tuned_s) == ("fast", (1.0,), (2.0,))
    assert [(one.name, one.seconds) for one in found.others] == [("slow", (3.0,))]


def test_where_no_runtime_is_installed_nothing_is_said(
    compared: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(turns, "installed_rivals", lambda _model: [])
    assert compared() == ""
