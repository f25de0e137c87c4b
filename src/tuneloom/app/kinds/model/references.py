"""Stages that run a model before it is tuned: in ONNX Runtime, in another number type, in its layouts."""

from collections.abc import Callable, Sequence
from typing import Any

from tuneloom.app.conducting.programs import Step, single_step
from tuneloom.engine.calls import Call, CallResult, Returned
from tuneloom.errors import TuneloomError, in_short
from tuneloom.model import JobSpec, LayoutChoice, ModelRecipe, ModelSummary
from tuneloom.scheduling.stages import DeviceDemand

_TIME = "tuneloom.tuners.tvm.bundles.references:reference_s"
_MOVED = "tuneloom.tuners.tvm.models.making.lowered:moved_outputs"
_LAYOUTS = "tuneloom.tuners.tvm.models.layouts"
_LIMIT_S = 600.0

Timed = Callable[[float | TuneloomError, float], Sequence[Step]]
"""Told the seconds of one run and the time; answers with what follows."""


Moved = Callable[[str | TuneloomError, float], Sequence[Step]]
"""Told how far a number type moves the outputs, and the time; answers with what follows."""


Chosen = Callable[[LayoutChoice | TuneloomError, float], Sequence[Step]]
"""Told the layout of a model, and the time; answers with what follows."""


def reference_step(job: str, spec: JobSpec, summary: ModelSummary, cores: int, timed: Timed) -> Step:
    """Times the model in ONNX Runtime on the device of the job, alone and with as many threads."""
    arguments = (spec.model, summary.inputs, summary.outputs, max(1, cores), spec.seed)
    call = Call(function=_TIME, arguments=arguments, timeout_s=_LIMIT_S)
    return _step("reference", job, spec, call, "ONNX Runtime could not be timed", timed)


def precision_step(job: str, spec: JobSpec, recipe: ModelRecipe, worker: str, moved: Moved) -> Step:
    """Compares the model in its number type with that in float32, both untuned, on the device of the job.

    The worker that has opened the model does it, as it checks the tuned one in the end.
    """
    call = Call(function=_MOVED, arguments=(recipe,), worker=worker, timeout_s=_LIMIT_S)
    return _step("precision", job, spec, call, f"{spec.dtype} could not be compared with float32", moved)


def layout_step(job: str, spec: JobSpec, recipe: ModelRecipe, worker: str, chosen: Chosen) -> Step:
    """Compiles the model in its layouts, then times it in each on the device of the job, without trials."""
    compiling, timing = (
        Call(function=f"{_LAYOUTS}:{name}", arguments=(recipe, *more), worker=worker, timeout_s=_LIMIT_S)
        for name, more in (("compile_layouts", ()), ("choose_layout", (spec.seed,)))
    )
    failed = "its layouts could not be compared"

    def compiled(result: CallResult, at_s: float) -> Sequence[Step]:
        if isinstance(result, Returned):
            return [_step("layout", job, spec, timing, failed, chosen)]
        return chosen(TuneloomError(f"{failed}: {in_short(str(result))}"), at_s)

    return single_step(job, "layouts", lambda: compiling, compiled, home=worker)


def _step(
    name: str, job: str, spec: JobSpec, call: Call, failed: str, told: Callable[[Any, float], Sequence[Step]]
) -> Step:
    def ended(result: CallResult, at_s: float) -> Sequence[Step]:
        if isinstance(result, Returned):
            return told(result.value, at_s)
        return told(TuneloomError(f"{spec.name}: {failed}: {result}"), at_s)

    needs = DeviceDemand(key=spec.device_key)
    return single_step(job, name, lambda: call, ended, home=call.worker or "", needs=needs)
