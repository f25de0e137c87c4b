"""Quiet for measurements: whatever else works on their cores pauses, and goes on afterwards.

Where the device has cores of its own, nothing ever does. It matters where it has all cores of a machine.
Calls with locks take turns with measurements by these; one that paused would never give its locks back.
"""

from collections.abc import Sequence

from tuneloom.engine.calls import Call
from tuneloom.engine.workers import Worker


def keep_quiet(workers: Sequence[Worker], now_s: float) -> None:
    """Pause the workers that would disturb a call that is to be alone; let all others work."""
    calls = [worker.current.call for worker in workers if worker.current is not None]
    quiet = frozenset[int]().union(*(call.cores for call in calls if call.alone and call.cores))
    for worker in workers:
        disturbs = worker.current is not None and _disturbs(worker.current.call, quiet)
        if disturbs and worker.paused_at_s is None:
            worker.pause(now_s)
        elif not disturbs and worker.paused_at_s is not None:
            worker.resume(now_s)


def _disturbs(call: Call, quiet: frozenset[int]) -> bool:
    return not call.alone and not call.locks and call.cores is not None and not call.cores.isdisjoint(quiet)
