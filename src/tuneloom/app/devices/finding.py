"""Kinds of devices by name, and by what jobs are compiled for; found by entry points."""

import logging
from collections.abc import Mapping
from functools import cache
from importlib.metadata import EntryPoint

from tuneloom.app.devices.base import DeviceKind
from tuneloom.app.kinds.registering import registered
from tuneloom.engine.machine import CPU_KEY
from tuneloom.errors import FarmError

DEVICES = "tuneloom.devices"
_LOG = logging.getLogger("tuneloom.devices")


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
