"""Schedules of kernels that have no other: the first of TVM's rules for GPUs that knows what to do."""

from math import prod
from typing import Any

from tuneloom.backends.cuda.sums_of_one import without_sums_of_one
from tuneloom.compiler.fast_import import frames_without_source
from tuneloom.compiler.lazy import s_tir, tirx, tvm
from tuneloom.compiler.passes import own_pass
from tuneloom.compiler.statements import blocks_in, is_scheduled
from tuneloom.errors import TargetError

_MOST_SHARED = 48 * 1024
"""Bytes of shared memory that a block may have without asking the driver for more, on every GPU."""


def default_schedules() -> Any:
    """Bind the loops of kernels that have no schedule yet to a GPU's threads."""
    from tvm.s_tir import dlight

    gpu = dlight.gpu
    rules = (gpu.Matmul(), gpu.GEMV(), gpu.Reduction(), gpu.GeneralReduction())
    binding = dlight.ApplyDefaultSchedule(*map(_or_none, rules), gpu.Fallback())
    before, after = own_pass("WithoutSumsOfOne", without_sums_of_one), own_pass("AllBound", _all_bound)
    return tvm.transform.Sequential([before, binding, after])


def _all_bound(module: Any) -> Any:
    """The module; TargetError if a kernel was left without threads, for it would run on the host."""
    for name, function in module.functions.items():
        if isinstance(function, tirx.PrimFunc) and _is_left(function):
            raise TargetError(f"no rule binds the loops of {name.name_hint} to a GPU's threads")
    return module


def _is_left(function: Any) -> bool:
    """Whether a function that no rule knows computes something outside of a launch."""
    return not is_scheduled(function) and _stores_on_host(function.body)


def _stores_on_host(statement: Any) -> bool:
    match statement:
        case tirx.SeqStmt():
            return any(map(_stores_on_host, statement.seq))
        case tirx.For():
            return statement.thread_binding is None and _stores_on_host(statement.body)
        case tirx.AttrStmt():
            return statement.attr_key != "thread_extent" and _stores_on_host(statement.body)
        case s_tir.SBlockRealize():
            return _stores_on_host(statement.block.body)
    return isinstance(statement, tirx.BufferStore)


def _or_none(rule: Any) -> Any:
    """A rule that leaves kernels to the next one where it would raise, or makes what no GPU can run."""
    from tvm.s_tir.dlight import ScheduleRule

    def apply(function: Any, target: Any, tunable: bool) -> Any:
        try:
            with frames_without_source():  # a rule for tensor cores imports their instructions
                made = rule.apply(function, target, tunable)
        except Exception:  # ScheduleError, ValueError, RuntimeError: whatever a rule did not expect
            return None
        fits = made is None or isinstance(made, list) or _shared_bytes(made.mod) <= _MOST_SHARED
        return made if fits else None

    return ScheduleRule.from_callable(type(rule).__name__)(apply)


def _shared_bytes(module: Any) -> int:
    """How much shared memory the kernels of a module allocate; rules may keep a whole result there."""
    kernels = [one for one in module.functions.values() if isinstance(one, tirx.PrimFunc)]
    blocks = [block for kernel in kernels for block in blocks_in(kernel.body)]
    return sum(_bytes(one) for block in blocks for one in block.alloc_buffers if str(one.scope()) == "shared")


def _bytes(buffer: Any) -> int:
    return prod(int(getattr(extent, "value", 1)) for extent in buffer.shape) * int(buffer.dtype.itemsize)
