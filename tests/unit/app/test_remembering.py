"""A second look at a model is found again, and only for the very same question."""

from dataclasses import replace
from pathlib import Path

import pytest

from tuneloom.app.bundles.remembering import keep, recall
from tuneloom.model import ModelRecipe, ModelSummary, Task, TensorInfo

SUMMARY = ModelSummary(
    name="net",
    digest="d",
    target="{}",
    family="llvm",
    tasks=(Task(key="llvm-1", name="conv", weight=3, gflop=0.5, shapes="1 → 1", payload=b"\x00\xff"),),
    inputs=(TensorInfo(name="x", shape=(1, 3), dtype="float32"),),
    outputs=(TensorInfo(name="y", shape=(1,), dtype="float32"),),
    canary=b"canary",
    facts={"mcpu": "any"},
    notes=("the batch is 1",),
    foreign=({"function": "f", "file": "part_0.onnx", "operators": ["Det"]},),
)


@pytest.fixture
def recipe(tmp_path: Path) -> ModelRecipe:
    (tmp_path / "net.tflite").write_bytes(b"a model")
    return ModelRecipe(key="tasks", source=str(tmp_path / "net.tflite"), shapes={"x": (1, 3)}, target="cpu")


def test_what_was_kept_is_recalled_as_it_was(recipe: ModelRecipe, tmp_path: Path) -> None:
    keep(recipe, SUMMARY, str(tmp_path / "store.db"))
    found = recall(recipe, str(tmp_path / "store.db"))
    assert found == SUMMARY
    assert found.tasks[0].payload == b"\x00\xff"


@pytest.mark.parametrize(
    "change", [{"shapes": {"x": (2, 3)}}, {"target": "cuda"}, {"layout": "plain"}, {"only_tvm": True}]
)
def test_other_options_are_another_question(recipe: ModelRecipe, tmp_path: Path, change: object) -> None:
    keep(recipe, SUMMARY, str(tmp_path / "store.db"))
    assert recall(replace(recipe, **change), str(tmp_path / "store.db")) is None  # type: ignore[arg-type]


def test_a_file_that_changed_is_another_model(recipe: ModelRecipe, tmp_path: Path) -> None:
    keep(recipe, SUMMARY, str(tmp_path / "store.db"))
    Path(recipe.source).write_bytes(b"another model")
    assert recall(recipe, str(tmp_path / "store.db")) is None


def test_a_damaged_look_is_as_none(recipe: ModelRecipe, tmp_path: Path) -> None:
    keep(recipe, SUMMARY, str(tmp_path / "store.db"))
    for path in (tmp_path / "models").iterdir():
        path.write_bytes(path.read_bytes()[:20])
    assert recall(recipe, str(tmp_path / "store.db")) is None


def test_a_store_on_a_server_has_no_place_for_looks(recipe: ModelRecipe) -> None:
    keep(recipe, SUMMARY, "postgresql://host/name")
    assert recall(recipe, "postgresql://host/name") is None
