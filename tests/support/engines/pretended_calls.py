"""The functions of `tuneloom.testing.engines.calls` as a script, for engines without processes."""

import signal
from collections import Counter

from tuneloom.engine.calls import Call, CallResult, Died, KilledBy, Raised, Returned, TimedOut
from tuneloom.testing.engines import calls

Process = tuple[str, str]
"""A named worker and its machine."""


class PretendedCalls:
    """Answers calls as real processes would; what a named worker keeps is kept until it ends."""

    def __init__(self) -> None:
        self._kept: dict[Process, Counter[str]] = {}

    def __call__(self, call: Call) -> CallResult:
        function = call.function.partition(":")[2]
        process = (call.worker or "", call.place.machine if call.place else "")
        match function:
            case "crash":
                self._kept.pop(process, None)
                return Died(cause=KilledBy(signal.SIGSEGV))
            case "hang":
                self._kept.pop(process, None)
                return TimedOut(after_s=call.timeout_s or 0.0)
            case "refuse":
                return Raised(error="ValueError: no such thing", trace="in refuse")
            case "count":
                return Returned(value=self._count(call, process))
            case "spoil":
                self._kept.pop(process, None)
                return Returned(value=calls.spoil())
            case _:
                return Returned(value=getattr(calls, function)(*call.arguments))

    def released(self, worker: str) -> None:
        """A named worker ended."""
        self._kept = {process: kept for process, kept in self._kept.items() if process[0] != worker}

    def _count(self, call: Call, process: Process) -> int:
        if call.worker is None:
            return 1
        kept = self._kept.setdefault(process, Counter())
        kept[call.arguments[0]] += 1
        return kept[call.arguments[0]]


def takes_s(call: Call) -> float:
    """A second; a call that hangs takes its whole time."""
    if call.function.endswith(":hang"):
        return call.timeout_s if call.timeout_s is not None else 1e9
    return 1.0 if call.function.endswith(":crash") else 1.1
