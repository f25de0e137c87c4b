"""What every engine can do."""

from collections.abc import Sequence
from typing import Protocol

from tuneloom.engine.calls import Call, CallEnded


class Engine(Protocol):
    """Carries calls out in worker processes; used by one thread.

    A call that crashes, hangs or eats memory ends as a value; it never takes the
    engine down.
    """

    def now_s(self) -> float:
        """The engine's clock, in seconds; never goes backwards."""

    def prepare(self) -> None:
        """Get ready for calls, if that takes time; an interrupt may come in the middle of it."""

    def start(self, call_id: str, call: Call) -> None:
        """Begin a call; its end is reported by `poll`."""

    def stop(self, call_id: str) -> None:
        """End a call now; it is not reported any more. Unknown ids are ignored."""

    def release(self, worker: str) -> None:
        """End a named worker and free what it kept; unknown names are ignored."""

    def poll(self, timeout_s: float | None) -> Sequence[CallEnded]:
        """Wait up to `timeout_s` (None: for ever) for ends of calls; may return none."""

    def close(self) -> None:
        """End all workers."""
