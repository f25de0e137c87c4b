"""The kind of jobs for a tuner that is registered without a kind of its own."""

from tuneloom.app.kinds.base import JobKind
from tuneloom.app.kinds.tuner.job import TaskListJob
from tuneloom.engine.calls import Call
from tuneloom.errors import InputError
from tuneloom.model import JobSpec

REFUSAL = "tuneloom.tuners.opening:refusal"
WARM_UP = "tuneloom.tuners.warming:warm_tuners"
_OPENING_S = 600.0


def tuner_kind(name: str) -> JobKind:
    """Jobs whose tasks the tuner itself names; a bad model is refused by the tuner, in a worker."""
    return JobKind(
        name=name,
        program=TaskListJob,
        check=require_no_bundle,
        refusal=_refusal,
        warm_up=f"{WARM_UP}",
        named=lambda model: name if model.startswith(f"{name}:") else model.rpartition("/")[2],
    )


def require_no_bundle(spec: JobSpec) -> None:
    """Raise InputError for a job that asks for a bundle it can't have."""
    if spec.out is not None:
        raise InputError(f"{spec.name}: a {spec.tuner} job writes no bundle; omit --out", field="out")


def _refusal(spec: JobSpec) -> Call:
    return Call(function=REFUSAL, arguments=(spec.tuner, spec.model), timeout_s=_OPENING_S)
