"""The schedule a kernel has when nobody tuned it."""

from typing import Any

from tuneloom.tuners.tvm.fast_import import load_tvm
from tuneloom.tuners.tvm.lowering.passes import gpu_default_schedules
from tuneloom.tuners.tvm.targets.target import TargetSpec

NO_TRACE = "[[],[]]"


def default_module(module: Any, target: TargetSpec) -> Any:
    """On a CPU the loops as they are; on a GPU they have to be bound to threads first."""
    if target.kind == "llvm":
        return module
    copy = load_tvm().IRModule(dict(module.functions.items()))  # the pass would change its argument
    with target.to_tvm():
        return gpu_default_schedules()(copy)
