"""What another runtime runs faster is left to it, and the bundle runs it as before."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onnx import TensorProto, helper

from tuneloom.model import ExportedModel, ModelRecipe
from tuneloom.tuners.tvm.models.compiling.compiled import load_compiled
from tuneloom.tuners.tvm.models.compiling.foreign import ForeignModel
from tuneloom.tuners.tvm.models.making.compiled import export_model
from tuneloom.tuners.tvm.models.making.lowered import lowered_model
from tuneloom.tuners.tvm.models.precision.samples import seeded_inputs
from tuneloom.tuners.tvm.models.rivals import choosing

ALWAYS, NEVER = 0.0, float("inf")


@pytest.fixture
def recipe(tmp_path: Path) -> ModelRecipe:
    """A model with two inputs, one of which nothing reads."""
    nodes = [helper.make_node("Relu", ["x"], ["r"]), helper.make_node("Exp", ["r"], ["y"])]
    inputs = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [4, 8]) for name in ("unread", "x")]
    result = helper.make_tensor_value_info("y", TensorProto.FLOAT, [4, 8])
    graph = helper.make_graph(nodes, "net", inputs, [result])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=10)
    path = tmp_path / "net.onnx"
    path.write_bytes(model.SerializeToString())
    return ModelRecipe(key=str(tmp_path), source=str(path), shapes={}, target="cpu")


def chosen(recipe: ModelRecipe, monkeypatch: pytest.MonkeyPatch, margin: float, pieces: bool = False) -> Any:
    monkeypatch.setattr(choosing, "installed_rivals", lambda _model: ["onnxruntime"])
    monkeypatch.setattr(choosing, "_MARGIN", margin)
    monkeypatch.setattr(choosing, "_SECONDS", 0.0)
    return choosing.choose(recipe, {}, 0, pieces=pieces)


def test_a_model_that_is_faster_in_onnx_runtime_is_left_there(
    recipe: ModelRecipe, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    handover = chosen(recipe, monkeypatch, ALWAYS).handover
    assert (handover.runtime, handover.left, handover.whole) == ("onnxruntime", (), True)
    assert handover.difference < 1e-6
    ((part,),) = handover.foreign
    assert part["operators"] == ["Relu", "Exp"] and set(handover.shares) == {part["function"]}
    (tmp_path / "out").mkdir()
    assert export_model(handover.applied(recipe), {}, str(tmp_path / "out")) == ExportedModel()
    assert not (tmp_path / "out" / "model.so").exists(), "nobody would load it"
    inputs, outputs = lowered_model(recipe).inputs, lowered_model(recipe).outputs
    loaded = load_compiled(tmp_path / "out", inputs, outputs, [part]).open()
    assert isinstance(loaded, ForeignModel), "a session, and no program around it"
    values = seeded_inputs(inputs, seed=1)
    np.testing.assert_allclose(loaded.run(values)[0], np.exp(np.maximum(values[1], 0)), rtol=1e-5)


def test_tvm_keeps_a_model_that_is_not_clearly_faster_elsewhere(
    recipe: ModelRecipe, monkeypatch: pytest.MonkeyPatch
) -> None:
    choice = chosen(recipe, monkeypatch, NEVER)
    assert choice.handover is None and [one.whole for one in choice.rejected] == [True]


def test_a_runtime_that_refuses_a_model_leaves_the_others_to_choose_from(
    recipe: ModelRecipe, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(choosing, "_SECONDS", 0.0)
    monkeypatch.setattr(choosing, "_MARGIN", NEVER)
    monkeypatch.setattr(choosing, "installed_rivals", lambda _model: ["unheard-of", "onnxruntime"])
    choice = choosing.choose(recipe, {}, 0, pieces=False)
    assert [one.runtime for one in choice.rejected] == ["onnxruntime"]


def test_pieces_that_can_not_be_compiled_leave_the_choice_between_all_and_nothing(
    recipe: ModelRecipe, monkeypatch: pytest.MonkeyPatch
) -> None:
    def failing(*_arguments: Any) -> Any:
        raise ValueError("no kernel")

    monkeypatch.setattr(choosing, "_pieces", failing)
    choice = chosen(recipe, monkeypatch, ALWAYS, pieces=True)
    assert choice.handover.whole and "no kernel" in choice.notes[0]
