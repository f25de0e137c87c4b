"""Schedules of kernels that have no other: the first of TVM's rules for GPUs that knows what to do."""

from math import prod
from typing import Any

from tuneloom.backends.cuda.sums_of_one import without_sums_of_one
from tuneloom.compiler.fast_import import frames_without_source
from tuneloom.compiler.lazy import tirx, tvm
from tuneloom.compiler.passes import own_pass
from tuneloom.compiler.statements import blocks_in

_MOST_SHARED = 48 * 1024
"""Bytes of shared memory that a block may have without asking the driver for more, on every GPU."""


def default_schedules() -> Any:
    """Bind the loops of kernels that have no schedule yet to a GPU's threads."""
    from tvm.s_tir import dlight

    gpu = dlight.gpu
    rules = (gpu.Matmul(), gpu.GEMV(), gpu.Reduction(), gpu.GeneralReduction())
    binding = dlight.ApplyDefaultSchedule(*map(_or_none, rules), gpu.Fallback())
    return tvm.transform.Sequential([own_pass("WithoutSumsOfOne", without_sums_of_one), binding])


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
