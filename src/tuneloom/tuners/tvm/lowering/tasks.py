"""Kernels of a lowered model as tasks: named, weighted, and packed for any process."""

import re
from collections import Counter
from typing import Any

from tuneloom.backends.implementers import ModelKernel
from tuneloom.backends.meaning import Meaning
from tuneloom.compiler.fast_import import load_tvm
from tuneloom.compiler.lazy import ms, relax, s_tir, tvm_ffi
from tuneloom.compiler.statements import is_scheduled
from tuneloom.compiler.target import TargetSpec
from tuneloom.model import Task
from tuneloom.tuners.tvm.inserting import claims_on
from tuneloom.tuners.tvm.lowering.graph import LoweredModel
from tuneloom.tuners.tvm.lowering.payloads import pack_kernel, unpack_kernel

_NUMBERING = re.compile(r"(?<=[a-z])\d+(?=_|$)")

_VIEWS = frozenset(("reshape", "flatten", "squeeze", "expand_dims"))
"""Kernels that the compiler turns into views of the same memory: nothing runs."""


def extract(lowered: LoweredModel) -> list[Task]:
    """The different kernels of a model, each once, with how often the model calls it."""
    calls = kernel_calls(lowered.module)
    tasks: dict[str, Task] = {}
    for name, count in calls.items():
        if kernel_class(name) in _VIEWS:
            continue
        function = lowered.module[name]
        if is_scheduled(function) and not _is_claimed(name, lowered):
            continue
        key = kernel_key(function, lowered.target)
        weight = count + (tasks[key].weight if key in tasks else 0)
        known = tasks.get(key)
        meaning = lowered.meanings.get(name)
        tasks[key] = _task(key, known.name if known else name, function, weight, lowered.target, meaning)
    return list(tasks.values())


def vanishing(module: Any) -> set[str]:
    """Kernels that become views wherever `main` calls them; one that makes an output of the model copies."""
    load_tvm()
    bindings = [binding for block in module["main"].body.blocks for binding in block.bindings]
    calls = [
        each for each in bindings if getattr(getattr(each.value, "op", None), "name", "") == "relax.call_tir"
    ]
    names = {each.var: str(each.value.args[0].name_hint) for each in calls}
    copying = {name for var, name in names.items() if not isinstance(var, relax.DataflowVar)}
    return {name for name in names.values() if kernel_class(name) in _VIEWS} - copying


def _is_claimed(name: str, lowered: LoweredModel) -> bool:
    """Whether somebody beside TVM makes code for a kernel that came with its schedule."""
    meaning = lowered.meanings.get(name)
    kernel = ModelKernel(module=None, meaning=meaning, target=lowered.target)
    return meaning is not None and any(True for _ in claims_on(kernel))


def kernel_calls(module: Any) -> Counter[str]:
    """How often `main` calls each kernel, in the order of the first calls."""
    return Counter(calls_in_order(module))


def calls_in_order(module: Any) -> list[str]:
    """The kernels that `main` calls, one after the other."""
    load_tvm()
    calls: list[str] = []

    def visit(node: Any) -> None:
        if isinstance(node, relax.Call) and getattr(node.op, "name", "") == "relax.call_tir":
            calls.append(str(node.args[0].name_hint))

    relax.analysis.post_order_visit(module["main"], visit)
    return calls


def kernel_key(function: Any, target: TargetSpec) -> str:
    """A name for the workload on this kind of target, the same in every process."""
    digest = tvm_ffi.structural_hash(kernel_module(function)) & (2**64 - 1)
    return f"{target.family}-{digest:016x}"


def kernel_module(function: Any) -> Any:
    """A module with this kernel alone, under the name tuning expects."""
    tvm = load_tvm()
    return tvm.IRModule({"main": function.with_attr("global_symbol", "main")})


def kernel_class(name: str) -> str:
    """The sequence of fused operators in a kernel's name, without numbering."""
    return _NUMBERING.sub("", name.removeprefix("fused_"))


def unpack(task: Task) -> ModelKernel:
    """The kernel inside a task's payload."""
    return unpack_kernel(task.payload)


def task_of(function: Any, target: TargetSpec) -> Task:
    """A kernel that came without a model as a task of its own."""
    name = str(function.attrs["global_symbol"]) if "global_symbol" in (function.attrs or {}) else "main"
    return _task(kernel_key(function, target), name, function, 1, target)


def _task(
    key: str, name: str, function: Any, weight: int, target: TargetSpec, meaning: Meaning | None = None
) -> Task:
    load_tvm()
    module = kernel_module(function)
    payload = pack_kernel(module, target, meaning)
    return Task(
        key=key,
        name=name,
        weight=weight,
        gflop=float(s_tir.analysis.estimate_tir_flops(module)) / 1e9,
        shapes=_shapes(module),
        kernel_class=kernel_class(name),
        payload=payload,
    )


def _shapes(module: Any) -> str:
    infos = ms.arg_info.ArgInfo.from_entry_func(module)
    texts = ["×".join(str(int(extent)) for extent in info.shape) or "1" for info in infos]
    return f"{', '.join(texts[:-1])} → {texts[-1]}"
