"""A farm at work: trying everything in it, and what the resources of a run do."""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from tuneloom.app.conducting.calling import end_of
from tuneloom.app.conducting.placing import Placing
from tuneloom.app.farm.joining import JoinedFarm, Warmth, join
from tuneloom.app.farm.reading import FarmFile
from tuneloom.engine.api import Engine
from tuneloom.engine.calls import Call, Place, Returned
from tuneloom.engine.machine import Offer
from tuneloom.errors import InputError
from tuneloom.model import Device, Host
from tuneloom.store import RunStatus, open_existing

_CANARY = "tuneloom.tuners.tvm.measuring.canary:canary_time"
_CANARY_S = 180.0
_CLOCK_S = 60.0
_ONLY = "only"
_WELL = "ok"
_NICE = 15
_TOO_NICE = "it works with niceness {}, so all others go before it; start Ray with RAY_worker_niceness=0"
COLD = Warmth(warm_up=None, environment={})
"""Workers that find nothing imported: enough to try a farm out."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckedResource:
    """A host or a device of a farm; `state` is `ok`, or says what is wrong with it."""

    machine: str
    name: str
    key: str = ""
    about: str = ""
    versions: str = ""
    clock_offset_s: float | None = None
    canary_s: float | None = None
    state: str = _WELL

    @property
    def well(self) -> bool:
        return self.state == _WELL


def check_farm(farm: FarmFile, *, insecure: bool = False) -> list[CheckedResource]:
    """Try everything in a farm file; raises FarmError if it can't be joined at all."""
    joined = join(farm, COLD, insecure=insecure)
    try:
        found = [row for offer in joined.fleet.offers for row in [_checked(joined, offer)]]
    finally:
        joined.engine.close()
    return [*found, *_missing(joined)]


def _checked(joined: JoinedFarm, offer: Offer) -> CheckedResource:
    resource, facts = offer.resource, joined.facts[offer.resource.machine]
    row = CheckedResource(
        machine=resource.machine,
        name=resource.name,
        about=_about(resource, facts),
        versions=_versions(facts),
    )
    if isinstance(resource, Host):
        state = _WELL if facts["niceness"] < _NICE else _TOO_NICE.format(facts["niceness"])
        return replace(row, clock_offset_s=_clock_offset_s(joined.engine, offer), state=state)
    row = replace(row, key=resource.key)
    return _with_canary(row, joined, offer)


def _with_canary(row: CheckedResource, joined: JoinedFarm, offer: Offer) -> CheckedResource:
    assert isinstance(offer.resource, Device)
    target = joined.file.target_of(offer.resource.key) or offer.target
    placing = Placing()
    placing.add(offer)
    call = Call(function=_CANARY, arguments=(target,), timeout_s=_CANARY_S)
    joined.engine.start(_ONLY, placing.placed(call, "check", offer.resource.name))
    result = end_of(joined.engine, _ONLY, None)
    if not isinstance(result, Returned):
        return replace(row, state=f"its canary failed: {result}")
    if isinstance(result.value, float):
        return replace(row, canary_s=result.value)
    return replace(row, state=f"its canary failed: {result.value}") if result.value else row


def _clock_offset_s(engine: Engine, offer: Offer) -> float | None:
    """How far the machine's clock is ahead; as exact as the call is quick."""
    place = Place(resource=offer.resource.name, machine=offer.resource.machine)
    engine.start(_ONLY, Call(function="time:time", place=place, timeout_s=_CLOCK_S))
    before_s = time.time()
    result = end_of(engine, _ONLY, None)
    if not isinstance(result, Returned):
        return None
    return float(result.value) - (before_s + time.time()) / 2


def _missing(joined: JoinedFarm) -> list[CheckedResource]:
    """Devices in trouble and machines that can't be used."""
    rows = [
        CheckedResource(machine=machine, name=name, state=trouble)
        for machine, facts in joined.facts.items()
        for name, trouble in facts["troubles"].items()
    ]
    return rows + [
        CheckedResource(machine=machine, name=machine, state=reason)
        for machine, reason in joined.machines.absent.items()
    ]


def _about(resource: Host | Device, facts: Mapping[str, Any]) -> str:
    if isinstance(resource, Host):
        return f"{resource.slots} slots, {facts['cores']} cores, {facts['cpu']}"
    return str(facts["devices"].get(resource.name, {}).get("device", ""))


def _versions(facts: Mapping[str, Any]) -> str:
    versions = facts["versions"]
    return f"Tuneloom {versions['tuneloom']}, TVM {versions['apache-tvm']}, Python {versions['python']}"


_RESOURCES = "resources"


@dataclass(frozen=True, slots=True, kw_only=True)
class ResourceStatus:
    """One resource; `state` says what it runs, or since when and why it is away."""

    machine: str
    name: str
    key: str
    slots: int
    utilisation: float
    queue: int
    state: str


def farm_status(run: str, place: str | None = None) -> list[ResourceStatus]:
    """The resources of a run, by machine; raises InputError for one that does not run."""
    with open_existing(place) as store:
        record = store.run(run)
        if record.status is not RunStatus.RUNNING:
            raise InputError(
                f"run {record.id} is not running, it is {record.status.value}; "
                f"`tuneloom report {record.id}` shows what it did"
            )
        listed = store.notes(record.id).get(_RESOURCES) or ()
        view = store.view(record.id) or {}
    pictures = {str(each["name"]): each for each in view.get("resources", ())}
    rows = [_status(entry, pictures.get(str(entry["name"]), {})) for entry in listed]
    return sorted(rows, key=lambda row: (row.machine, bool(row.key), row.name))


def _status(entry: Mapping[str, Any], picture: Mapping[str, Any]) -> ResourceStatus:
    away: Sequence[Any] = entry.get("away") or ()
    gone = bool(away) and away[-1][1] is None
    return ResourceStatus(
        machine=str(entry.get("machine", "")),
        name=str(entry["name"]),
        key=str(entry.get("device_key", "")),
        slots=int(entry.get("slots", 1)),
        utilisation=float(picture.get("utilisation", 0.0)),
        queue=int(picture.get("queue", 0)),
        state=f"away: {entry.get('why_away', '')}" if gone else str(picture.get("now", "")) or "idle",
    )
