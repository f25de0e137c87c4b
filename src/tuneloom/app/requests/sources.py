"""Where a job's model comes from, and whether the job can run at all."""

from collections.abc import Collection, Iterable
from pathlib import Path

from tuneloom.app.bundles import writing as bundling
from tuneloom.app.kinds.kernel.specs import require_kernel
from tuneloom.engine.machine import CPU_KEY, CUDA_KEY
from tuneloom.errors import InputError, TargetError
from tuneloom.model import JobSpec
from tuneloom.tuners.kernel import DESCRIPTION, FUNCTIONS
from tuneloom.tuners.kernel import NAME as KERNEL
from tuneloom.tuners.mock import MockTuner
from tuneloom.tuners.mock.kernel import SCHEME as MOCK_SCHEME
from tuneloom.tuners.mock.kernel import mock_tasks
from tuneloom.tuners.tvm import TvmTuner
from tuneloom.tuners.tvm.importing.sources import require_source

ZOO_SCHEME = "zoo:"


def is_file(model: str) -> bool:
    """Whether a model is a path, not the name of something that needs no file."""
    return not model.startswith((ZOO_SCHEME, MOCK_SCHEME))


def located(model: str, folder: Path | None = None) -> str:
    """A model so that a process in another folder finds it; paths count from `folder`."""
    return str((folder or Path()).joinpath(model).absolute()) if is_file(model) else model


def tuner_of(model: str) -> str:
    """The tuner for a model; a TOML file describes a kernel."""
    if model.startswith(MOCK_SCHEME):
        return MockTuner.name
    return KERNEL if is_file(model) and model.endswith((DESCRIPTION, FUNCTIONS)) else TvmTuner.name


def device_for(target: str) -> str:
    """The device key that a target is profiled on unless another is named."""
    return CUDA_KEY if "cuda" in target else CPU_KEY


def job_names(models: Iterable[str], taken: Iterable[str] = ()) -> list[str]:
    """A short name for each model; a name that is taken gets a number."""
    return numbered([short_name(model) for model in models], taken)


def numbered(wanted: Iterable[str], taken: Iterable[str] = ()) -> list[str]:
    """The wanted names, numbered where they are taken already."""
    used, names = set(taken), []
    for short in wanted:
        name, number = short, 1
        while name in used:
            number += 1
            name = f"{short}-{number}"
        used.add(name)
        names.append(name)
    return names


def short_name(model: str) -> str:
    """What people call a model."""
    if model.startswith(MOCK_SCHEME):
        return MockTuner.name
    return Path(model.removeprefix(ZOO_SCHEME)).stem if is_file(model) else model.removeprefix(ZOO_SCHEME)


def require_possible(spec: JobSpec, device_keys: Collection[str]) -> None:
    """Raise InputError if a job is bound to fail: no such device or model, or nowhere to write."""
    if device_keys and spec.device_key not in device_keys and not spec.waits_for_devices:
        known = ", ".join(repr(key) for key in sorted(device_keys))
        raise TargetError(
            f"{spec.name}: no device with key {spec.device_key!r}; known: {known}. "
            "A job waits for a device that is yet to come only if told to (--wait-for-devices)"
        )
    if spec.tuner == TvmTuner.name:
        require_source(spec.model)
    if spec.tuner == KERNEL:
        require_kernel(spec)
    if spec.tuner == MockTuner.name:
        mock_tasks(spec.model)
        if spec.out is not None:
            raise InputError(f"{spec.name}: a mock model has no bundle; leave its output folder away")
    if spec.out is not None:
        bundling.require_free(Path(spec.out))
