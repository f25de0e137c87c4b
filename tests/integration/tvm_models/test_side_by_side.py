"""A model whose kernels are compiled by several processes is the model that one process compiles."""

import os
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from onnx import ModelProto, TensorProto, helper

from support.models.onnx_files import write_network
from tuneloom.model import ModelRecipe
from tuneloom.tuners.tvm.lowering.graph import LoweredModel, lower
from tuneloom.tuners.tvm.models.checking import check_model
from tuneloom.tuners.tvm.models.compiling import side_by_side
from tuneloom.tuners.tvm.models.compiling.building import build_model, build_plain
from tuneloom.tuners.tvm.models.compiling.compiled import CompiledModel
from tuneloom.tuners.tvm.models.compiling.side_by_side import made_apart
from tuneloom.tuners.tvm.models.making import compiled, untuned
from tuneloom.tuners.tvm.models.making.made import MODELS, UntunedRun
from tuneloom.tuners.tvm.models.making.untuned import run_untuned

SHAPE = [4, 30]


def several_kernels() -> ModelProto:
    """Sums and running sums in turn, so that no two kernels are fused into one."""
    nodes = [helper.make_node("CumSum", ["x", "axis"], ["a"]), helper.make_node("Softmax", ["a"], ["b"])]
    nodes += [helper.make_node("CumSum", ["b", "axis"], ["c"]), helper.make_node("Exp", ["c"], ["y"])]
    axis = helper.make_tensor("axis", TensorProto.INT64, [], [1])
    ends = [helper.make_tensor_value_info(name, TensorProto.FLOAT, SHAPE) for name in "xy"]
    graph = helper.make_graph(nodes, "sums", ends[:1], ends[1:], [axis])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)


@pytest.fixture
def cores(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Pretends that this process has three cores and no other threads; the processes that were begun."""
    begun: list[int] = []
    begin = side_by_side._begun

    def noted(*arguments: Any) -> int:
        begun.append(begin(*arguments))
        return begun[-1]

    monkeypatch.setattr(side_by_side.os, "sched_getaffinity", lambda _: {0, 1, 2})
    monkeypatch.setattr(side_by_side.threading, "active_count", lambda: 1)
    monkeypatch.setattr(side_by_side, "_LEAST", 1)
    monkeypatch.setattr(side_by_side, "_begun", noted)
    return begun


def test_parts_that_other_processes_compile_make_one_model(
    cores: list[int], imported: Any, host: Any, agrees: Any
) -> None:
    model = several_kernels()
    agrees(model, build_model(lower(imported(model), host), {}))
    assert cores


def test_a_part_whose_process_dies_is_compiled_here(
    cores: list[int], imported: Any, host: Any, agrees: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Dies:
        def prctl(self, *_: object) -> None:
            raise MemoryError

    monkeypatch.setattr(side_by_side.ctypes, "CDLL", lambda _: Dies())
    model = several_kernels()
    agrees(model, build_model(lower(imported(model), host), {}))
    assert cores


def test_what_is_done_ahead_is_done_by_other_processes_and_may_fail(cores: list[int], tmp_path: Path) -> None:
    def leave(name: str) -> None:
        (tmp_path / name).write_text(str(os.getpid()))

    side_by_side.done_ahead([*(partial(leave, name) for name in "abcdef"), lambda: 1 // 0])
    makers = [(tmp_path / name).read_text() for name in "abcdef"]
    assert len(set(makers)) == 3 and str(os.getpid()) not in makers


def test_a_value_made_beside_is_made_by_another_process_and_may_be_missing(cores: list[int]) -> None:
    assert side_by_side.made_beside(os.getpid)() not in (None, os.getpid())
    assert side_by_side.made_beside(lambda: 1 // 0)() is None


def test_with_one_core_nothing_is_made_beside(cores: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(side_by_side.os, "sched_getaffinity", lambda _: {0})
    assert side_by_side.made_beside(os.getpid)() is None


def test_the_untuned_model_is_compiled_by_another_process_beside_the_tuned_one(
    cores: list[int], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def noted(lowered: LoweredModel) -> CompiledModel:
        (tmp_path / str(os.getpid())).touch()
        return build_plain(lowered)

    monkeypatch.setattr(compiled, "build_plain", noted)
    source = str(write_network(tmp_path / "net.onnx"))
    recipe = ModelRecipe(key="beside", source=source, shapes={}, target="cpu")
    try:
        assert compiled.compile_model(recipe, {}, seed=0) == {}
        assert check_model(recipe, {}, seed=0).same
    finally:
        MODELS.forget(recipe)
    (maker,) = (path.name for path in tmp_path.iterdir() if path.name.isdigit())
    assert maker != str(os.getpid())


@pytest.mark.parametrize("seeds", [(3, 3), (3, 4)])
def test_the_untuned_model_is_run_ahead_and_again_only_for_other_inputs(
    cores: list[int], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seeds: tuple[int, int]
) -> None:
    runs: list[int] = []

    def noted(recipe: ModelRecipe, model: CompiledModel, seed: int) -> UntunedRun:
        runs.append(seed)
        return run_untuned(recipe, model, seed)

    monkeypatch.setattr(untuned, "run_untuned", noted)  # what another process notes is not seen here
    recipe = ModelRecipe(
        key="ahead", source=str(write_network(tmp_path / "net.onnx")), shapes={}, target="cpu"
    )
    ahead, later = seeds
    try:
        compiled.compile_plain(recipe, ahead)
        assert check_model(recipe, {}, seed=later).same
    finally:
        MODELS.forget(recipe)
    assert runs == ([] if ahead == later else [later])


def test_an_untuned_model_that_ends_its_process_is_run_for_the_check(
    cores: list[int], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(untuned, "made_apart", lambda _: made_apart(partial(os._exit, 3)))
    recipe = ModelRecipe(
        key="abort", source=str(write_network(tmp_path / "net.onnx")), shapes={}, target="cpu"
    )
    try:
        compiled.compile_plain(recipe, 0)
        assert MODELS.of(recipe).untuned is None and check_model(recipe, {}, seed=0).same
    finally:
        MODELS.forget(recipe)
