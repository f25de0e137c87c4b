"""A model is imported once in the worker that keeps it."""

import pytest

from tuneloom.backends.cpu.target import CpuTarget
from tuneloom.model import ModelRecipe
from tuneloom.tuners.tvm.models import refusals, stages

RECIPE = ModelRecipe(key="once", source="net.onnx", shapes={}, target="cpu")


@pytest.fixture
def imports(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What was imported; lowering and compiling are left out."""
    seen: list[str] = []

    def import_model(source: str, _shapes: object, *, only_tvm: bool, left: object) -> object:
        seen.append(source)
        return object()

    monkeypatch.setattr(stages, "import_model", import_model)
    monkeypatch.setattr(stages, "resolve_target", lambda text, cores: text)
    monkeypatch.setattr(stages, "lower", lambda imported, _target, options: (imported, options.layout))
    monkeypatch.setattr(stages, "build_plain", lambda lowered: lowered)
    monkeypatch.setattr(refusals, "resolve_target", lambda _text: CpuTarget(kind="llvm", config={}))
    for kept in ("_imported", "_models", "_plain"):
        monkeypatch.setattr(stages, kept, {})
    return seen


@pytest.mark.parametrize("first", ["tuned", "untuned"])
def test_the_tuned_and_the_untuned_model_come_from_one_import(imports: list[str], first: str) -> None:
    steps = [lambda: stages.lowered_model(RECIPE), lambda: stages.compile_plain(RECIPE)]
    for step in steps if first == "tuned" else steps[::-1]:
        step()
    assert imports == ["net.onnx"]


def test_checking_a_model_imports_it_for_the_job_that_follows(imports: list[str]) -> None:
    assert refusals.refusal(RECIPE.source, [{}], "cpu") is None
    stages.lowered_model(RECIPE)
    stages.compile_plain(RECIPE)
    assert imports == ["net.onnx"]


def test_the_same_file_with_other_shapes_is_another_model(imports: list[str]) -> None:
    stages.imported_model("net.onnx", {"x": (1, 3)})
    stages.imported_model("net.onnx", {"x": (2, 3)})
    assert imports == ["net.onnx", "net.onnx"]


def test_the_imported_model_is_let_go_when_both_are_made_of_it(imports: list[str]) -> None:
    stages.lowered_model(RECIPE)
    stages.compile_plain(RECIPE)
    stages.compile_plain(RECIPE)
    assert stages._imported == {} and imports == ["net.onnx"]
