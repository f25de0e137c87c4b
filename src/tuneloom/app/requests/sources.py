"""Where a job's model comes from, and whether the job can run at all."""

from collections.abc import Collection, Iterable
from dataclasses import replace
from pathlib import Path

from tuneloom.app.devices.describing import key_for
from tuneloom.app.kinds.base import JobKind
from tuneloom.app.kinds.finding import has_scheme, kind_for, kind_named
from tuneloom.backends.resolving import backend_of_text
from tuneloom.errors import InputError, TargetError
from tuneloom.model import NOWHERE, JobSpec

_NAMELESS = "model"
"""The name of a job whose model has none; whoever checks the model says what is wrong with it."""


def kind_of(model: str, tuner: str | None = None) -> JobKind:
    """The kind of a job: the one that is named, or else the one that its model belongs to."""
    return kind_for(model) if tuner is None else kind_named(tuner)


def located(model: str, folder: Path | None = None, tuner: str | None = None) -> str:
    """A model so that a process in another folder finds it; paths count from `folder`."""
    if has_scheme(model) or not kind_of(model, tuner).paths:
        return model
    return str((folder or Path()).joinpath(model).absolute())


def device_for(target: str) -> str:
    """The device key that a target is profiled on unless another is named."""
    return key_for(target)


def job_names(models: Iterable[str], taken: Iterable[str] = (), tuner: str | None = None) -> list[str]:
    """A short name for each model; a name that is taken gets a number."""
    return numbered([kind_of(model, tuner).named(model) or _NAMELESS for model in models], taken)


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


def where_possible(spec: JobSpec, device_keys: Collection[str]) -> JobSpec:
    """The job without a device, if its own is not here and its model can be built without it."""
    missing = spec.device_key not in device_keys and not spec.waits_for_devices
    described = spec.target.startswith("{") and backend_of_text(spec.target).builds_anywhere
    if missing and described and spec.out is not None and spec.device_key == device_for(spec.target):
        return replace(spec, device_key=NOWHERE)
    return spec


def require_possible(spec: JobSpec, device_keys: Collection[str]) -> None:
    """Raise InputError if a job is bound to fail: no such device or model, or nowhere to write."""
    require_device(spec, device_keys)
    kind = kind_named(spec.tuner)
    if not spec.measures and (spec.out is None or not kind.bundles):
        raise InputError(f"{spec.name}: nothing is measured without a device; add --out", field="device")
    if not spec.measures:
        backend_of_text(spec.target).require_builder()
    if spec.out is not None and not kind.bundles:
        raise InputError(f"{spec.name}: a {kind.name} job writes no bundle; omit --out", field="out")
    kind.require(spec)


def require_device(spec: JobSpec, device_keys: Collection[str]) -> None:
    """Raise TargetError if none of these devices is the job's, and it does not wait for one."""
    if not spec.measures or spec.waits_for_devices:
        return
    if device_keys and spec.device_key not in device_keys:
        known = ", ".join(repr(key) for key in sorted(device_keys))
        raise TargetError(
            f"{spec.name}: no device with key {spec.device_key!r}; known: {known}. "
            "Nothing can be measured here; to wait for a device to appear, add --wait-for-devices",
            field="device",
        )
