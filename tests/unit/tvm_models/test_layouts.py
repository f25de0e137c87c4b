"""The layout of a whole model is the one that it runs fastest in."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tuneloom.backends.finding import backend_of
from tuneloom.backends.resolving import resolve_target
from tuneloom.errors import ModelError, TargetError
from tuneloom.model import LayoutChoice, ModelRecipe
from tuneloom.tuners.tvm.models import layouts
from tuneloom.tuners.tvm.models.layouts import choose_layout, compile_layouts, fastest
from tuneloom.tuners.tvm.models.making import lowered
from tuneloom.tuners.tvm.models.making.made import MODELS
from tuneloom.tuners.tvm.models.remembering import recall_layout

H200 = '{"kind": "cuda", "arch": "sm_90"}'


class Timed:
    """A compiled model that takes so many seconds by its own clock."""

    inputs = ()

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds

    def open(self) -> "Timed":
        return self

    def run(self, _values: Sequence[Any]) -> list[Any]:
        return []

    def timer(self, _values: Sequence[Any]) -> Callable[[], float]:
        return lambda: self._seconds


@pytest.fixture
def recipe(tmp_path: Path) -> ModelRecipe:
    model = tmp_path / "net.onnx"
    model.write_bytes(b"a model")
    return ModelRecipe(
        key=str(tmp_path), source=str(model), shapes={}, target=H200, lowered_folder=str(tmp_path / "kept")
    )


def model_taking(monkeypatch: pytest.MonkeyPatch, seconds: dict[str, float | None]) -> list[str]:
    """Have a model take so long in each layout, or be impossible in it; returns those it was compiled in."""
    compiled: list[str] = []
    each = {name: SimpleNamespace(target=resolve_target(H200), layout=name) for name in seconds}

    def build(found: Any, _guesses: Any, guess: bool) -> Timed:
        assert guess
        compiled.append(found.layout)
        taken = seconds[found.layout]
        if taken is None:
            raise ModelError("no")
        return Timed(taken)

    def in_turn(runs: Sequence[Callable[[], float]], _seconds: float) -> list[list[float]]:
        return [[run()] for run in runs]

    monkeypatch.setattr(layouts, "lowered_model", lambda _recipe: each["channels_last"])
    monkeypatch.setattr(layouts, "lowered_in", lambda _recipe, layout: each[layout])
    monkeypatch.setattr(layouts, "guesses_for", lambda _lowered: {})
    monkeypatch.setattr(layouts, "build_model", build)
    monkeypatch.setattr(layouts, "all_in_turn", in_turn)
    return compiled


@pytest.mark.parametrize(
    ("first_s", "chosen"), [(0.5, "channels_first"), (0.95, "channels_last"), (2.0, "channels_last")]
)
def test_another_layout_has_to_be_clearly_faster(
    first_s: float, chosen: str, recipe: ModelRecipe, monkeypatch: pytest.MonkeyPatch
) -> None:
    model_taking(monkeypatch, {"channels_last": 1.0, "channels_first": first_s})
    compile_layouts(recipe)
    choice = choose_layout(recipe, 0)
    assert choice == LayoutChoice(layout=chosen, seconds={"channels_last": 1.0, "channels_first": first_s})
    assert recall_layout(recipe) == choice
    opened_again = MODELS.of(recipe).lowered
    assert getattr(opened_again, "layout", "channels_last") == chosen


def test_a_model_is_compiled_once_in_each_layout(
    recipe: ModelRecipe, monkeypatch: pytest.MonkeyPatch
) -> None:
    compiled = model_taking(monkeypatch, {"channels_last": 1.0, "channels_first": 0.5})
    compile_layouts(recipe)
    choose_layout(recipe, 0)
    assert compiled == ["channels_last", "channels_first"]


def test_a_model_is_lowered_again_for_another_layout(
    recipe: ModelRecipe, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lowered, "lowered_in", lambda _recipe, layout: layout)
    wanted = ("blocked", "blocked", "channels_first")
    found = [lowered.lowered_model(replace(recipe, layout=layout)) for layout in wanted]
    assert tuple(map(str, found)) == wanted


def test_a_layout_that_cannot_be_compiled_is_left_out(
    recipe: ModelRecipe, monkeypatch: pytest.MonkeyPatch
) -> None:
    model_taking(monkeypatch, {"channels_last": 1.0, "channels_first": None})
    assert choose_layout(recipe, 0).seconds == {"channels_last": 1.0}


def test_the_usual_layout_has_to_be_possible(recipe: ModelRecipe, monkeypatch: pytest.MonkeyPatch) -> None:
    model_taking(monkeypatch, {"channels_last": None, "channels_first": 1.0})
    with pytest.raises(ModelError):
        compile_layouts(recipe)


def test_equal_times_leave_the_usual_layout() -> None:
    assert fastest({"channels_last": 1.0, "channels_first": 1.0}) == "channels_last"


def test_a_layout_that_a_target_does_not_have_is_refused_with_those_that_it_has() -> None:
    cpu, gpu = resolve_target("cpu"), resolve_target(H200)
    with pytest.raises(
        TargetError, match=r"layout channels_first is not available on .* \(it has blocked, plain\)"
    ):
        backend_of(cpu).require_layout("channels_first", cpu)
    backend_of(gpu).require_layout("channels_first", gpu)
