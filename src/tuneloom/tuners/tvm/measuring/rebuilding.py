"""Building a configuration from what is kept of it for ever: a trace, or an implementer's values."""

import json
import time

from tuneloom.backends.finding import backend_of
from tuneloom.backends.implementers import ModelKernel
from tuneloom.compiler.lazy import s_tir
from tuneloom.model import Artifact, Failure, FailureKind
from tuneloom.model.space import TVM, implementer_of
from tuneloom.tuners.tvm.inserting import alone, inserted, symbol_of
from tuneloom.tuners.tvm.lowering.payloads import NO_TRACE, pack_kernel, unpack_kernel
from tuneloom.tuners.tvm.lowering.tasks import kernel_key
from tuneloom.tuners.tvm.measuring.artifacts import BuiltKernel
from tuneloom.tuners.tvm.measuring.building import build_insert, build_kernel


def rebuild_kernel(payload: bytes, configuration: str) -> Artifact | Failure:
    """Build a kept configuration of a packed kernel."""
    kernel = unpack_kernel(payload)
    if implementer_of(configuration) != TVM:
        return _of_implementer(kernel, configuration)
    if configuration == NO_TRACE:
        module = backend_of(kernel.target).default_module(kernel.module, kernel.target)
        return build_kernel(pack_kernel(module, kernel.target, kernel.meaning))
    return _replayed(kernel, configuration)


def _of_implementer(kernel: ModelKernel, configuration: str) -> Artifact | Failure:
    started = time.perf_counter()
    own = alone(kernel, configuration)
    if own is None:
        key = kernel_key(kernel.module["main"], kernel.target)
        insert = inserted(kernel, configuration, symbol_of(key, configuration))
        return insert if isinstance(insert, Failure) else build_insert(kernel, insert)
    if isinstance(own, Failure):
        return own
    built = BuiltKernel(implementer=own[0], target=kernel.target.text, library=own[1])
    return Artifact(
        payload=built.to_bytes(),
        features={"library_bytes": float(len(own[1]))},
        build_s=time.perf_counter() - started,
    )


def _replayed(kernel: ModelKernel, trace: str) -> Artifact | Failure:
    schedule = s_tir.Schedule(kernel.module, debug_mask="none", error_render_level="none")
    backend_of(kernel.target).follow(trace, kernel.target)
    try:
        s_tir.Trace.apply_json_to_schedule(json.loads(trace), schedule)
    except Exception as error:
        return Failure(kind=FailureKind.BUILD_ERROR, message=f"the trace does not fit: {error}")
    return build_kernel(pack_kernel(schedule.mod, kernel.target, kernel.meaning))
