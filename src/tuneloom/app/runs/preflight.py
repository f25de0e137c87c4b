"""What is refused before a run begins: models that can't be imported, targets nobody knows.

The models are imported in workers of the run's own engine, so a file that crashes the
importer is refused as well, and the wait is one that the run would have had anyway.
"""

from collections.abc import Iterable

from tuneloom.app.conducting.calling import end_of
from tuneloom.app.conducting.interruptions import Interruptions
from tuneloom.engine.api import Engine
from tuneloom.engine.calls import Call, CallResult, Lost, Returned
from tuneloom.errors import InputError, ModelError
from tuneloom.model import JobSpec
from tuneloom.tuners.tvm import TvmTuner

REFUSAL = "tuneloom.tuners.tvm.models.refusals:refusal"
_GLANCE_S = 0.25


def require_usable(engine: Engine, specs: Iterable[JobSpec]) -> None:
    """Raise the error of the first job whose model or target can't be used.

    The same model for the same target is looked at once; one after another, because
    imported models may be large.
    """
    asked = {}
    for spec in specs:
        if spec.tuner == TvmTuner.name:
            asked[spec.model, tuple(spec.shapes.items()), spec.target] = spec
    for spec in asked.values():
        error = refused(spec, _answer(engine, spec))
        if error is not None:
            raise error


def refused(spec: JobSpec, result: CallResult | Lost) -> InputError | None:
    """Why a job is refused, if it is; an importer that died refuses too."""
    if isinstance(result, Returned):
        error: InputError | None = result.value
        return error
    return ModelError(f"{spec.model} can't be imported: {result}; export it again")


def _answer(engine: Engine, spec: JobSpec) -> CallResult | Lost:
    engine.prepare()
    with Interruptions() as interruptions:
        engine.start(REFUSAL, Call(function=REFUSAL, arguments=(spec.model, dict(spec.shapes), spec.target)))
        return end_of(engine, REFUSAL, _GLANCE_S, interruptions.check)
