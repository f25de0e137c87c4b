"""A machine as it describes itself, in a process that runs there, and the kinds of devices that it asks."""

import logging
import os
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache
from importlib.metadata import EntryPoint

from tuneloom.app.devices.base import DeviceEntry, DeviceKind, DeviceState, MachineCores
from tuneloom.app.kinds.registering import registered
from tuneloom.engine.machine import CPU_KEY, HOST, Fleet, Offer
from tuneloom.engine.sharing.reservations import chosen_cores
from tuneloom.errors import FarmError, TargetError
from tuneloom.model import LOCAL, Host

DEVICES = "tuneloom.devices"


def device_kinds() -> Mapping[str, DeviceKind]:
    """Every kind that can be used, by its name; one that can't be loaded is named in a warning, once."""
    return _loaded(registered(DEVICES))


def device_kind(name: str) -> DeviceKind:
    """The kind that is registered under this name; raises FarmError naming those there are."""
    for point in registered(DEVICES):
        if point.name == name:
            return _load(point)
    known = ", ".join(sorted(point.name for point in registered(DEVICES)))
    raise FarmError(f"no kind of device named {name!r}; known: {known}")


def plain_targets() -> list[str]:
    """The targets that are said in one word."""
    return sorted({kind.target for kind in device_kinds().values()})


def key_for(target: str) -> str:
    """The key of the devices that jobs with a target are measured on unless another is named."""
    return next((name for name, kind in device_kinds().items() if kind.takes(target)), CPU_KEY)


@cache
def _loaded(points: tuple[EntryPoint, ...]) -> Mapping[str, DeviceKind]:
    kinds = {}
    for point in sorted(points, key=lambda point: point.name):
        try:
            kinds[point.name] = _load(point)
        except FarmError as error:
            _LOG.warning("%s", error)
    return kinds


@cache
def _load(point: EntryPoint) -> DeviceKind:
    try:
        kind: DeviceKind = point.load()
    except Exception as error:  # a stranger's module may raise anything
        raise FarmError(
            f"the kind of device {point.name!r} ({point.value}) can't be loaded: {error}; "
            "update or remove the package that registers it"
        ) from error
    return kind


_AT_ONCE = 32
"""Devices that are looked at side by side: a board that does not answer keeps no other waiting."""

_LOG = logging.getLogger("tuneloom.devices")
_FAILED = "devices of the kind %r are left out: %s; update or remove the package that registers it"


@dataclass(frozen=True, slots=True, kw_only=True)
class MachineOrder:
    """What a machine is asked to offer; without `devices`, everything that its kinds of devices find."""

    name: str = LOCAL
    slots: int | None = None
    devices: tuple[DeviceEntry, ...] | None = None
    device_cores: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class SeenDevice:
    """A device, how it would be offered, and what a look at it found."""

    entry: DeviceEntry
    offer: Offer
    state: DeviceState


@dataclass(frozen=True, slots=True, kw_only=True)
class Description:
    """A machine as it is now: its host, unless it has no slots, and its devices, usable or not."""

    host: Offer | None
    devices: tuple[SeenDevice, ...]

    @property
    def offers(self) -> tuple[Offer, ...]:
        """What can be used."""
        hosts = (self.host,) if self.host is not None else ()
        return (*hosts, *(seen.offer for seen in self.devices if seen.state.usable))

    @property
    def fleet(self) -> Fleet:
        """What can be used, as the resources of a run."""
        return Fleet(offers=self.offers)

    @property
    def troubles(self) -> dict[str, str]:
        """Why devices can't be used, by the names of these."""
        return {s.offer.resource.name: s.state.trouble for s in self.devices if not s.state.usable}


def describe(order: MachineOrder, cores: frozenset[int] | None = None) -> Description:
    """Look at this machine and, side by side, at its devices; may take seconds.

    CPU devices have these cores, or else the last ones.
    """
    listed = found_devices(order) if order.devices is None else order.devices
    machine = _machine_cores(order, cores)
    offered = [(entry, offer) for entry in listed if (offer := _offer(entry, machine)) is not None]
    entries, offers = [entry for entry, _ in offered], [offer for _, offer in offered]
    with ThreadPoolExecutor(max_workers=max(1, min(len(entries), _AT_ONCE))) as threads:
        states = threads.map(lambda entry: device_kind(entry.kind).look(entry), entries)
        seen = tuple(
            SeenDevice(entry=entry, offer=offer, state=state)
            for entry, offer, state in zip(entries, offers, states, strict=True)
        )
    return Description(host=_host(order, machine), devices=seen)


def _offer(entry: DeviceEntry, machine: MachineCores) -> Offer | None:
    """A device as its kind offers it; None, and a warning, where a stranger's kind fails at that."""
    try:
        return device_kind(entry.kind).offer(entry, machine)
    except Exception as error:
        _LOG.warning(_FAILED, entry.kind, error)
        return None


def require_cores(count: int) -> None:
    """Raise TargetError if this machine can't have a CPU device of so many cores."""
    every = len(os.sched_getaffinity(0))
    if count < 1:
        raise TargetError(f"a device needs at least 1 core, got {count}")
    if count > every:
        raise TargetError(f"a device can't have {count} cores, there are {every} in all")


def found_devices(order: MachineOrder) -> tuple[DeviceEntry, ...]:
    """The devices of a machine of which no list says anything; a kind that fails at finding has none."""
    found: list[DeviceEntry] = []
    for name, kind in device_kinds().items():
        try:
            found += kind.found(order.device_cores)
        except Exception as error:
            _LOG.warning(_FAILED, name, error)
    return tuple(found)


def _host(order: MachineOrder, machine: MachineCores) -> Offer | None:
    if not machine.host_cores:
        return None
    slots = len(machine.host_cores) if order.slots is None else order.slots
    host = Host(name=machine.named(HOST), slots=slots, machine=order.name)
    return Offer(resource=host, cores=machine.host_cores)


def wanted_cores(order: MachineOrder) -> int:
    """How many cores the devices of a machine are made of."""
    entries = found_devices(order) if order.devices is None else order.devices
    return sum(device_kind(entry.kind).cores(entry) for entry in entries)


def _machine_cores(order: MachineOrder, cores: frozenset[int] | None) -> MachineCores:
    """Some cores are the CPU device, the others the host; with too few, both share them all."""
    every = frozenset(os.sched_getaffinity(0))
    device = chosen_cores(every, wanted_cores(order), ()) if cores is None else cores
    host = frozenset() if order.slots == 0 else every - device or every
    return MachineCores(name=order.name, host_cores=host, device_cores=device)
