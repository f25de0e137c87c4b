"""Kernels that were built to be measured are linked into the model as they are."""

from functools import partial
from typing import Any

import pytest
from onnx import ModelProto, TensorProto, helper

from tuneloom.compiler.objects import renamed
from tuneloom.model import Artifact
from tuneloom.tuners.tvm.lowering.graph import lower
from tuneloom.tuners.tvm.lowering.payloads import NO_TRACE
from tuneloom.tuners.tvm.lowering.tasks import extract
from tuneloom.tuners.tvm.measuring.artifacts import BuiltKernel
from tuneloom.tuners.tvm.measuring.rebuilding import rebuild_kernel
from tuneloom.tuners.tvm.models.compiling import side_by_side
from tuneloom.tuners.tvm.models.compiling.building import build_model, compile_ahead, guess_ahead
from tuneloom.tuners.tvm.models.compiling.kept_kernels import KeptKernels

Objects = dict[tuple[str, str], bytes]


def two_kernels() -> ModelProto:
    nodes = [helper.make_node("Softmax", ["x"], ["a"]), helper.make_node("Softmax", ["a"], ["y"], axis=0)]
    ends = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [4, 30]) for name in "xy"]
    graph = helper.make_graph(nodes, "twice", ends[:1], ends[1:])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)


def pointwise() -> Any:
    from tvm import te

    x = te.placeholder((8,), name="x")
    return te.create_prim_func([x, te.compute((8,), lambda i: x[i] + 1.0, name="y")])


@pytest.fixture
def compiled(monkeypatch: pytest.MonkeyPatch) -> list[set[str]]:
    """The names of the kernels that models compiled, model by model."""
    seen: list[set[str]] = []
    compile_parts = side_by_side._libraries

    def noted(parts: Any, target: Any) -> list[Any]:
        seen.append({str(gvar.name_hint) for part in parts for gvar in part.get_global_vars()})
        return compile_parts(parts, target)

    monkeypatch.setattr(side_by_side, "_libraries", noted)
    return seen


def built_alone(tasks: Any) -> Objects:
    built = [rebuild_kernel(task.payload, NO_TRACE) for task in tasks]
    assert all(isinstance(one, Artifact) for one in built)
    codes = [BuiltKernel.from_bytes(one.payload).code for one in built if isinstance(one, Artifact)]
    return {(task.key, NO_TRACE): code for task, code in zip(tasks, codes, strict=True)}


@pytest.mark.parametrize("count", [1, 2])
def test_a_kernel_that_was_built_alone_is_not_compiled_again(
    count: int, compiled: list[set[str]], imported: Any, host: Any, agrees: Any
) -> None:
    model = two_kernels()
    lowered = lower(imported(model), host)
    tasks = extract(lowered)
    assert len(tasks) == 2
    made = built_alone(tasks[:count])
    found = build_model(lowered, {task.key: NO_TRACE for task in tasks}, objects=made)
    agrees(model, found)
    assert compiled == [{task.name for task in tasks[count:]}]
    again = build_model(lowered, {task.key: NO_TRACE for task in tasks}, objects=made)
    assert again.library == found.library


def test_a_kernel_that_was_built_with_another_schedule_is_compiled(
    compiled: list[set[str]], imported: Any, host: Any, agrees: Any
) -> None:
    model = two_kernels()
    lowered = lower(imported(model), host)
    objects = built_alone(extract(lowered))
    agrees(model, build_model(lowered, {}, objects=objects))
    assert compiled == []


@pytest.fixture
def alone(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of the kernels that were compiled one by one."""
    seen: list[str] = []
    compile_alone = side_by_side._compiled_alone

    def noted(functions: Any, attrs: Any, target: Any) -> Any:
        seen.extend(functions)
        return compile_alone(functions, attrs, target)

    monkeypatch.setattr(side_by_side, "_compiled_alone", noted)
    return seen


def test_a_kernel_of_a_model_is_not_compiled_for_the_next_one(
    alone: list[str], imported: Any, host: Any, agrees: Any
) -> None:
    model, kept = two_kernels(), KeptKernels()
    lowered = lower(imported(model), host)
    first = build_model(lowered, {}, kept=kept)
    assert len(alone) == len(kept) == 2
    again = build_model(lowered, {}, kept=kept)
    assert len(alone) == 2 and again.library == first.library
    agrees(model, again)
    agrees(model, build_model(lowered, {}, guess=True, kept=kept))
    assert len(alone) > 2, "other schedules are other kernels"


def test_a_kernel_is_found_again_under_another_name(host: Any) -> None:
    kernel, kept = pointwise().with_attr("global_symbol", "one"), KeptKernels()
    (code,) = side_by_side._compiled_alone({"one": kernel}, None, host.to_tvm()).values()
    kept.keep({"one": kernel}, {"one": code}, host.to_tvm())
    same, other = kernel.with_attr("global_symbol", "two"), kernel.with_attr("tirx.noalias", False)
    assert kept.of([("two", same)], host.to_tvm()).keys() == {"two"}
    assert kept.of([("one", other)], host.to_tvm()) == {}


def test_first_guesses_are_compiled_while_others_are_measured(
    alone: list[str], imported: Any, host: Any, agrees: Any
) -> None:
    model, kept = two_kernels(), KeptKernels()
    lowered = lower(imported(model), host)
    keys = [task.key for task in extract(lowered)]
    module, names = guess_ahead(lowered, keys[:1], kept)
    assert list(names.values()) == keys[:1]
    assert compile_ahead(lowered, module, names, kept, 60.0) and len(alone) == 1
    agrees(model, build_model(lowered, {}, guess=True, kept=kept))
    assert len(set(alone)) == len(alone) == 2


def test_a_schedule_is_followed_once_for_all_models_that_have_the_kernel() -> None:
    followed: list[str] = []

    def follow(how: str) -> str:
        followed.append(how)
        return how

    kernel, kept = pointwise(), KeptKernels()
    other = kernel.with_attr("tirx.noalias", False)
    wanted = [(kernel.with_attr("global_symbol", "one"), "a"), (kernel, "a"), (kernel, "b"), (other, "a")]
    found = [kept.scheduled(function, how, partial(follow, how)) for function, how in wanted]
    assert found == ["a", "a", "b", "a"] and followed == ["a", "b", "a"]


def test_only_as_many_guesses_are_compiled_as_there_is_time(imported: Any, host: Any) -> None:
    lowered, kept = lower(imported(two_kernels()), host), KeptKernels()
    module, names = guess_ahead(lowered, [task.key for task in extract(lowered)], KeptKernels())
    assert not compile_ahead(lowered, module, names, kept, 0.0) and len(kept) == 1
    assert compile_ahead(lowered, module, names, kept, 0.0) and len(kept) == 2


def test_a_function_of_an_object_file_gets_another_name_if_it_is_there(imported: Any, host: Any) -> None:
    (code, *_) = built_alone(extract(lower(imported(two_kernels()), host))).values()
    other = renamed(code, "__tvm_ffi_main", "__tvm_ffi_a_much_longer_name")
    assert other is not None and renamed(other, "__tvm_ffi_main", "again") is None
    assert renamed(other, "__tvm_ffi_a_much_longer_name", "again") is not None
    assert renamed(b"!<arch>\n", "__tvm_ffi_main", "again") is None
