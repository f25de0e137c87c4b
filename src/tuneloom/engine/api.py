"""What every engine can do, and what it reports: ends of calls, and resources that come and go."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from tuneloom.engine.calls import Call, CallBegan, CallEnded, CallWaits
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


class Engine(Protocol):
    """Carries calls out in worker processes, on one machine or on many; used by one thread.

    A call that crashes, hangs or eats memory ends as a value; it never takes the
    engine down. A call that gets lost through no fault of its own ends as `Lost`, and
    one on a machine that is lost ends with the report of that.
    """

    def now_s(self) -> float:
        """The engine's clock, in seconds; never goes backwards. All reported times are of this clock."""

    def prepare(self) -> None:
        """Get ready for calls, if that takes time; an interrupt may come in the middle of it."""

    def start(self, call_id: str, call: Call) -> None:
        """Begin a call at its place; its end is reported by `poll`.

        An id may be used again once its call has ended or was stopped.
        """

    def stop(self, call_id: str) -> None:
        """End a call now; it is not reported any more. Unknown ids are ignored.

        A named worker that was carrying it out ends, too; calls that wait for that worker
        end as `Lost`.
        """

    def release(self, worker: str) -> None:
        """End a named worker wherever it lives and free what it kept; unknown names are ignored."""

    def poll(self, timeout_s: float | None) -> Sequence[EngineReport]:
        """Wait up to `timeout_s` (None: for ever) for something to report; may return nothing.

        Reports come in the order in which things happened. Resources that were there from
        the start, as far as the caller knows them, are not reported.
        """

    def close(self) -> None:
        """End all workers."""
