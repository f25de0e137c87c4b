"""What an engine reports: ends of calls, and resources that come and go."""

from dataclasses import dataclass

from tuneloom.engine.calls import CallEnded
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


EngineReport = CallEnded | ResourceJoined | ResourceLeft | ResourceDisturbed | MachineLost
