"""Kernels with knobs, as a kind of job."""

import os
from collections.abc import Mapping, Sequence
from pathlib import Path

from tuneloom.app.kinds.base import JobKind
from tuneloom.app.kinds.kernel.job import KernelJob
from tuneloom.app.kinds.kernel.reporting import validity_of
from tuneloom.app.kinds.kernel.specs import as_described, kernel_files, require_kernel
from tuneloom.engine.machine import CPU_KEY
from tuneloom.model import JobSpec
from tuneloom.tuners.kernel import DESCRIPTION, FUNCTIONS, KERNEL_FIELDS, NAME
from tuneloom.tuners.kernel.warmth import LOADED


def _environment(specs: Sequence[JobSpec]) -> Mapping[str, str]:
    """Functions may be loaded before workers are forked, unless they may touch a GPU."""
    light = [s.model for s in specs if s.model.endswith(FUNCTIONS) and s.device_key == CPU_KEY]
    return {LOADED: os.pathsep.join(light)} if light else {}


def _drop_functions(spec: JobSpec) -> None:
    """Delete the file that held Python functions: the job that needed it has ended."""
    if spec.model.endswith(FUNCTIONS):
        Path(spec.model).unlink(missing_ok=True)


KIND = JobKind(
    name=NAME,
    program=KernelJob,
    takes=lambda model: model.endswith((DESCRIPTION, FUNCTIONS)),
    check=require_kernel,
    warm_up="tuneloom.tuners.kernel.warmth:warm_up",
    environment=_environment,
    filled_in=as_described,
    fields=KERNEL_FIELDS,
    paths=True,
    files=lambda spec: kernel_files(Path(spec.model)),
    validity=validity_of,
    ended=_drop_functions,
    records="kernel",
)
