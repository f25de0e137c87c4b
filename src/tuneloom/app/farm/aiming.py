"""Jobs aimed at devices of a farm: compiled for what the device is, wherever they are compiled."""

import json
import platform
from collections.abc import Generator, Sequence
from dataclasses import replace

from tuneloom.app.conducting.calling import ends_of
from tuneloom.app.devices.describing import device_kind
from tuneloom.app.farm.joining import JoinedFarm
from tuneloom.app.farm.reading import FarmFile
from tuneloom.app.kinds.finding import kind_named
from tuneloom.compiler.linking import machine_of
from tuneloom.engine.api import Engine
from tuneloom.engine.calls import Call, CallResult, Lost, Place, Returned
from tuneloom.engine.machine import Offer
from tuneloom.errors import FarmError, TargetError
from tuneloom.model import Device, JobSpec

Aiming = Generator[Sequence[Call], Sequence[CallResult | Lost], JobSpec]
"""Yields what has to be asked of devices side by side, gets the answers, returns the job aimed at them."""

_PLAIN = "cpu"


def for_devices(specs: Sequence[JobSpec], keys: Sequence[str]) -> list[JobSpec]:
    """The jobs once for each of several keys; names and folders say which is which."""
    if len(keys) < 2:
        return list(specs)
    return [_for_device(spec, key) for spec in specs for key in keys]


def _for_device(spec: JobSpec, key: str) -> JobSpec:
    out = f"{spec.out}/{key}" if spec.out is not None else None
    return replace(spec, name=f"{spec.name}-{key}", device_key=key, out=out)


def with_listed_target(spec: JobSpec, farm: FarmFile) -> JobSpec:
    """The job with the target that the farm file gives for its key, unless it has one of its own."""
    listed = farm.target_of(spec.device_key)
    return replace(spec, target=listed) if listed is not None and spec.target == _PLAIN else spec


def for_board(spec: JobSpec, farm: FarmFile) -> JobSpec:
    """The job as a board can carry it out, if that is its device: there is TVM's runtime and nothing else.

    Raises TargetError for a kind of job that boards know nothing of.
    """
    if not any(device_kind(device.kind).only_runtime for device in farm.devices_with(spec.device_key)):
        return spec
    kind = kind_named(spec.tuner)
    if not kind.boards:
        raise TargetError(
            f"{spec.name}: {kind.name} jobs can't be measured on boards; choose another --device"
        )
    return replace(spec, only_tvm=True)


def require_own_machine(spec: JobSpec) -> None:
    """Raise TargetError for a target of another architecture, if the job is measured on this machine."""
    if not spec.target.startswith("{"):
        return
    try:
        wanted = machine_of(json.loads(spec.target))
    except (ValueError, AttributeError):
        return  # whoever makes a target of it says what is wrong
    if wanted != platform.machine():
        raise TargetError(
            f"{spec.name}: its target is for {wanted}, this machine is {platform.machine()}; "
            "measure on a board: --farm FILE --device KEY",
            field="target",
        )


def as_it_is(spec: JobSpec) -> Aiming:
    """No device has to be asked."""
    yield from ()
    return spec


def aimed_at(spec: JobSpec, farm: JoinedFarm) -> Aiming:
    """The job with its target as its devices understand it.

    Where all machines are alike, nothing has to be asked. A device that is lost meanwhile says nothing.
    Raises FarmError where devices of one key differ or all are lost, and TargetError for a target that
    they can't be used with.
    """
    call = kind_named(spec.tuner).aim(spec)
    devices = [offer for offer in farm.fleet.offers if _is_for(offer, spec.device_key)]
    cpus = {str(facts["cpu"]) for facts in farm.facts.values()}
    if call is None or not devices or (len(cpus) == 1 and all(offer.cores for offer in devices)):
        return spec
    answers: dict[str, str] = {}
    lost = ""
    results = yield [_placed(call, offer) for offer in devices]
    for offer, result in zip(devices, results, strict=True):
        if isinstance(result, Lost):
            lost = f"{offer.resource.name}: {result}"
        else:
            answers[offer.resource.name] = _target(offer, result)
    if not answers:
        raise FarmError(f"{spec.name}: no device with key {spec.device_key!r} is left: {lost}")
    first, target = next(iter(answers.items()))
    for name, other in answers.items():
        if other != target:
            raise FarmError(
                f"{first} and {name} have the key {spec.device_key!r} but are different: {target}, {other}; "
                "give them different keys"
            )
    return replace(spec, target=target)


def require_usable_device(spec: JobSpec, farm: JoinedFarm) -> None:
    """Raise FarmError for a job whose devices are listed but can't be used, with the reasons."""
    if spec.device_key in farm.fleet.device_keys or spec.waits_for_devices:
        return
    keys = {entry.key for entry in farm.file.devices}
    if spec.device_key in keys and farm.troubles:
        why = "; ".join(f"{name}: {trouble}" for name, trouble in farm.troubles.items())
        raise FarmError(f"{spec.name}: no device with key {spec.device_key!r} can be used: {why}")


def _is_for(offer: Offer, key: str) -> bool:
    return isinstance(offer.resource, Device) and offer.resource.key == key


def settled(aiming: Aiming, engine: Engine) -> JobSpec:
    """What came of it, while nothing else uses the engine."""
    try:
        calls = next(aiming)
        while True:
            calls = aiming.send(ends_of(engine, calls))
    except StopIteration as done:
        spec: JobSpec = done.value
        return spec


def _placed(call: Call, offer: Offer) -> Call:
    place = Place(resource=offer.resource.name, machine=offer.resource.machine)
    return replace(call, place=place, environment=offer.environment)


def _target(offer: Offer, result: CallResult) -> str:
    if not isinstance(result, Returned):
        raise FarmError(f"{offer.resource.name} can't say what to compile for: {result}")
    if isinstance(result.value, TargetError):
        raise result.value
    return str(result.value)
