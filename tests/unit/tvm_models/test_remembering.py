"""What a model lowered to is found again, and only for the very same question."""

from dataclasses import replace
from pathlib import Path

import pytest

from tuneloom.model import ModelRecipe, ModelSummary, Task, TensorInfo
from tuneloom.tuners.tvm.models.remembering import keep, recall, was_taken

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
    return ModelRecipe(
        key="tasks",
        source=str(tmp_path / "net.tflite"),
        shapes={"x": (1, 3)},
        target="cpu",
        lowered_folder=str(tmp_path / "models"),
    )


def test_what_was_kept_is_recalled_as_it_was(recipe: ModelRecipe, tmp_path: Path) -> None:
    keep(recipe, SUMMARY)
    found = recall(recipe)
    assert found == SUMMARY
    assert found.tasks[0].payload == b"\x00\xff"


@pytest.mark.parametrize(
    "change",
    [
        {"shapes": {"x": (2, 3)}},
        {"target": "cuda"},
        {"layout": "plain"},
        {"only_tvm": True},
        {"cores": 2},
        {"dtype": "bfloat16"},
    ],
)
def test_other_options_are_another_question(recipe: ModelRecipe, tmp_path: Path, change: object) -> None:
    keep(recipe, SUMMARY)
    assert recall(replace(recipe, **change)) is None  # type: ignore[arg-type]


def test_a_file_that_changed_is_another_model(recipe: ModelRecipe, tmp_path: Path) -> None:
    keep(recipe, SUMMARY)
    Path(recipe.source).write_bytes(b"another model")
    assert recall(recipe) is None


def test_a_damaged_look_is_as_none(recipe: ModelRecipe, tmp_path: Path) -> None:
    keep(recipe, SUMMARY)
    for path in (tmp_path / "models").iterdir():
        path.write_bytes(path.read_bytes()[:20])
    assert recall(recipe) is None


def test_without_a_folder_nothing_is_kept(recipe: ModelRecipe) -> None:
    keep(replace(recipe, lowered_folder=""), SUMMARY)
    assert recall(replace(recipe, lowered_folder="")) is None


def test_a_model_that_was_taken_before_is_known_whatever_the_layout(recipe: ModelRecipe) -> None:
    asked = (recipe.lowered_folder, recipe.source, [recipe.shapes], recipe.target)
    assert not was_taken(*asked, False)
    keep(replace(recipe, layout="plain"), SUMMARY)
    assert was_taken(*asked, False)
    assert not was_taken(*asked, True)
    Path(recipe.source).write_bytes(b"another model")
    assert not was_taken(*asked, False)


def test_only_so_many_looks_are_kept(recipe: ModelRecipe, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tuneloom.tuners.tvm.models.remembering._MOST", 6)
    for cores in range(1, 9):
        keep(replace(recipe, cores=cores), SUMMARY)
    assert len(list(Path(recipe.lowered_folder).iterdir())) == 6
    assert recall(replace(recipe, cores=8)) == SUMMARY
