"""The stage that times ONNX Runtime, where a goal is a part of what it takes."""

from collections.abc import Callable, Sequence

from tuneloom.app.conducting.programs import Step
from tuneloom.engine.calls import Call, CallResult, Returned
from tuneloom.errors import TuneloomError
from tuneloom.model import JobSpec, ModelSummary, StageKind
from tuneloom.scheduling.stages import ANY_CORE, DeviceDemand, StageRequest

_TIME = "tuneloom.tuners.tvm.bundles.references:reference_s"
_LIMIT_S = 600.0

Timed = Callable[[float | TuneloomError, float], Sequence[Step]]
"""Told the seconds of one run and the time; answers with what follows."""


def reference_step(job: str, spec: JobSpec, summary: ModelSummary, cores: int, timed: Timed) -> Step:
    """Times the model in ONNX Runtime on the device of the job, alone and with as many threads."""
    arguments = (spec.model, summary.inputs, summary.outputs, max(1, cores), spec.seed)
    request = StageRequest(
        id="reference",
        job=job,
        lane="reference",
        step=0,
        kind=StageKind.INITIALISE.value,
        needs=DeviceDemand(key=spec.device_key),
        then=ANY_CORE,
    )

    def ended(result: CallResult, at_s: float) -> Sequence[Step]:
        if isinstance(result, Returned):
            found: float | TuneloomError = result.value
            return timed(found, at_s)
        return timed(TuneloomError(f"{spec.name}: ONNX Runtime could not be timed: {result}"), at_s)

    call = Call(function=_TIME, arguments=arguments, timeout_s=_LIMIT_S)
    return Step(request=request, call=lambda: call, ended=ended)
