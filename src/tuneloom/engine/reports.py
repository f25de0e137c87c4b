"""What an engine reports: ends of calls, and resources that come and go."""

from dataclasses import dataclass

from tuneloom.engine.calls import CallBegan, CallEnded, CallWaits
from tuneloom.engine.machine import Offer


@dataclass(frozen=True, slots=True, kw_only=True)
class ResourceJoined:
    """A host or a device can be used from now on."""

    offer: Offer


@dataclass(frozen=True, slots=True, kw_only=True)
class ResourceLeft:
    """A host or a device can't be used any more; calls that run there are given up."""

    name: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class MachineLost:
    """A machine is gone with all its resources, its workers and what these kept.

    The engine has forgotten the calls that ran there: no ends of them are reported.
    """

    name: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ResourceDisturbed:
    """Others use a device, too, so what is measured there may be wrong; nobody does if `by` is empty."""

    name: str
    by: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ResourceShared:
    """Another process measures on a device in turn with this one; nobody does any more if `by` is empty."""

    name: str
    by: str


ResourceReport = ResourceJoined | ResourceLeft | ResourceDisturbed | ResourceShared
"""What becomes of the devices of a machine."""

EngineReport = CallWaits | CallBegan | CallEnded | ResourceReport | MachineLost
