"""A model is imported once in the worker that keeps it, and forgotten as a whole."""

import pytest

from tuneloom.backends.cpu.target import CpuTarget
from tuneloom.model import ModelRecipe
from tuneloom.tuners.tvm.models import refusals
from tuneloom.tuners.tvm.models.making import compiled, lowered
from tuneloom.tuners.tvm.models.making.made import MadeModels

RECIPE = ModelRecipe(key="once", source="net.onnx", shapes={}, target="cpu")


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> MadeModels:
    """The models of a process that has none yet."""
    found = MadeModels()
    for module in (lowered, compiled):
        monkeypatch.setattr(module, "MODELS", found)
    return found


@pytest.fixture
def imports(monkeypatch: pytest.MonkeyPatch, made: MadeModels) -> list[str]:
    """What was imported; lowering and compiling are left out."""
    seen: list[str] = []

    def import_model(source: str, _shapes: object, *, only_tvm: bool, left: object) -> object:
        seen.append(source)
        return object()

    monkeypatch.setattr(lowered, "import_model", import_model)
    monkeypatch.setattr(lowered, "resolve_target", lambda text, cores: text)
    monkeypatch.setattr(lowered, "lower", lambda imported, _target, options: (imported, options.layout))
    monkeypatch.setattr(compiled, "build_plain", lambda lowered: lowered)
    monkeypatch.setattr(compiled, "build_model", lambda lowered, schedules, **_: (lowered, schedules))
    monkeypatch.setattr(refusals, "resolve_target", lambda _text: CpuTarget(kind="llvm", config={}))
    return seen


@pytest.mark.parametrize("first", ["tuned", "untuned"])
def test_the_tuned_and_the_untuned_model_come_from_one_import(imports: list[str], first: str) -> None:
    steps = [lambda: lowered.lowered_model(RECIPE), lambda: compiled.compile_plain(RECIPE)]
    for step in steps if first == "tuned" else steps[::-1]:
        step()
    assert imports == ["net.onnx"]


def test_checking_a_model_imports_it_for_the_job_that_follows(imports: list[str]) -> None:
    assert refusals.refusal(RECIPE.source, [{}], "cpu") is None
    lowered.lowered_model(RECIPE)
    compiled.compile_plain(RECIPE)
    assert imports == ["net.onnx"]


def test_the_same_file_with_other_shapes_is_another_model(imports: list[str]) -> None:
    lowered.imported_model("net.onnx", {"x": (1, 3)})
    lowered.imported_model("net.onnx", {"x": (2, 3)})
    assert imports == ["net.onnx", "net.onnx"]


def test_the_imported_model_is_let_go_when_both_are_made_of_it(imports: list[str], made: MadeModels) -> None:
    lowered.lowered_model(RECIPE)
    compiled.compile_plain(RECIPE)
    compiled.compile_plain(RECIPE)
    assert not made._imported and imports == ["net.onnx"]


def test_nothing_is_left_of_a_forgotten_model(imports: list[str], made: MadeModels) -> None:
    recipe = ModelRecipe(key="two", source="net.onnx", shapes={}, target="cpu", more_shapes=({"x": (2, 3)},))
    for variant in recipe.variants():
        compiled.tuned_model(variant, {"kernel": "trace"})
        compiled.plain_model(variant)
    assert len(made) == 4, "two imports, and what was made of each"
    made.forget(recipe)
    assert len(made) == 0


def test_a_key_that_stood_for_several_files_leaves_none_of_them(imports: list[str], made: MadeModels) -> None:
    """Proposals of what to leave to another runtime share a key, one after the other."""
    for left in (("a",), ("b",)):
        lowered.imported_model("net.onnx", {}, left=left)
        made.of(RECIPE.leaving(left))
    made.forget(RECIPE.leaving(("b",)))
    assert len(made) == 0


def test_another_model_stays_when_one_is_forgotten(imports: list[str], made: MadeModels) -> None:
    other = ModelRecipe(key="other", source="other.onnx", shapes={}, target="cpu")
    lowered.lowered_model(RECIPE)
    lowered.lowered_model(other)
    made.forget(RECIPE)
    lowered.lowered_model(other)
    assert imports == ["net.onnx", "other.onnx"]
