"""Models that TVM compiles, as a kind of job."""

from collections.abc import Mapping
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from typing import Any

from tuneloom.app.bundles.folders import lowered_folder, require_free
from tuneloom.app.kinds.base import JobKind
from tuneloom.app.kinds.model.job import ModelJob
from tuneloom.backends.resolving import backend_of_text
from tuneloom.engine.calls import Call
from tuneloom.errors import InputError
from tuneloom.model import JobSpec
from tuneloom.tuners.tvm.importing.naming import is_zoo, model_name, source_files
from tuneloom.tuners.tvm.importing.sources import require_source

REFUSAL = "tuneloom.tuners.tvm.models.refusals:refusal"
AIM = "tuneloom.backends.resolving:aimed"
_IMPORTING_S = 1800.0
_AIMING_S = 120.0


def _check(spec: JobSpec) -> None:
    require_source(spec.model)
    if spec.dtype != "float32" and spec.more_shapes:
        raise InputError(f"{spec.name}: {spec.dtype} is for one set of shapes; give each input one --shape")
    if spec.out is not None:
        require_free(Path(spec.out))


def _refusal(spec: JobSpec) -> Call:
    arguments = (spec.model, [dict(spec.shapes), *spec.more_shapes], spec.target, spec.only_tvm, spec.samples)
    worker = f"import:{sha256(repr(arguments).encode()).hexdigest()[:16]}"
    return Call(
        function=REFUSAL,
        arguments=(*arguments, lowered_folder(), spec.dtype),
        worker=worker,
        timeout_s=_IMPORTING_S,
    )


def _comparable(spec: JobSpec) -> bool:
    known = is_zoo(spec.model) or Path(spec.model).suffix == ".onnx"
    return known and backend_of_text(spec.target).on_host


def _filled_in(spec: JobSpec, given: Mapping[str, Any]) -> JobSpec:
    return replace(spec, measuring=backend_of_text(spec.target).measuring(spec.measuring))


def _aim(spec: JobSpec) -> Call:
    return Call(function=AIM, arguments=(spec.target,), timeout_s=_AIMING_S)


KIND = JobKind(
    name="tvm",
    program=ModelJob,
    takes=is_zoo,
    check=_check,
    refusal=_refusal,
    aim=_aim,
    warm_up="tuneloom.tuners.tvm.warmth:warm_up",
    comparable=_comparable,
    filled_in=_filled_in,
    paths=True,
    files=lambda spec: source_files(spec.model),
    named=model_name,
    boards=True,
    knows=True,
    bundles=True,
    records="metaschedule",
)
