"""Building a configuration from what is kept of it for ever: its trace."""

import json

from tuneloom.backends.finding import backend_of
from tuneloom.model import Artifact, Failure, FailureKind, Task
from tuneloom.tuners.tvm.lowering.payloads import NO_TRACE, pack_kernel, unpack_kernel
from tuneloom.tuners.tvm.measuring.building import build_kernel


def rebuild_kernel(task: Task, configuration: str) -> Artifact | Failure:
    """Replay a kept trace on the task's kernel and build it."""
    from tvm.s_tir import Schedule
    from tvm.s_tir.schedule import Trace

    module, target = unpack_kernel(task.payload)
    if configuration == NO_TRACE:
        return build_kernel(pack_kernel(backend_of(target).default_module(module, target), target))
    schedule = Schedule(module, debug_mask="none", error_render_level="none")
    backend_of(target).follow(configuration, target)
    try:
        Trace.apply_json_to_schedule(json.loads(configuration), schedule)
    except Exception as error:
        return Failure(kind=FailureKind.BUILD_ERROR, message=f"the trace does not fit: {error}")
    return build_kernel(pack_kernel(schedule.mod, target))
