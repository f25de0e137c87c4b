"""How steady a fixed piece of work is on the core that measurements use."""

import hashlib
import os
import statistics
import threading
import time
from collections.abc import Callable, Sequence

from tuneloom.app.doctor.findings import Finding, good, note, warning
from tuneloom.app.doctor.machine import stolen, ticks

_BYTES = bytes(1 << 20)
_QUIET, _USABLE = 1.02, 1.10
_LEAST_RUNS = 20


def noise(seconds: float, clock: Callable[[], float] = time.perf_counter) -> Sequence[Finding]:
    """The spread of the work's times, and the time a hypervisor took meanwhile."""
    before = ticks()
    times = _on_core(max(os.sched_getaffinity(0)), lambda: _timed(seconds, clock))
    return [*judged(times), *stolen(before, ticks())]


def judged(times: Sequence[float]) -> Sequence[Finding]:
    """The verdict on the times of equal work: how far the slow tenth is from the median."""
    slow = statistics.quantiles(times, n=10)[-1] / statistics.median(times)
    shown = f"a tenth of the runs takes over {slow:.3f} times the median ({len(times)} runs)"
    if slow <= _QUIET:
        return good("noise", f"{shown}: quiet")
    if slow <= _USABLE:
        return note("noise", f"{shown}: usable", "differences of a few per cent need more repeats")
    return warning("noise", f"{shown}: noisy", "find what else is running, or measure on other cores")


def _timed(seconds: float, clock: Callable[[], float]) -> list[float]:
    times: list[float] = []
    end = clock() + seconds
    while len(times) < _LEAST_RUNS or clock() < end:
        began = clock()
        hashlib.sha256(_BYTES).digest()
        times.append(clock() - began)
    return times


def _on_core(core: int, work: Callable[[], list[float]]) -> list[float]:
    """Work in a thread of its own, since pinning the caller's would outlast the work."""
    results: list[float] = []

    def pinned() -> None:
        os.sched_setaffinity(0, {core})
        results.extend(work())

    thread = threading.Thread(target=pinned)
    thread.start()
    thread.join()
    return results
