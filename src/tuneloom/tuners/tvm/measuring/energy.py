"""What a run costs in energy, by a counter of the device."""

import time
from collections.abc import Callable
from typing import Any

from tuneloom.backends.watching import ConditionWatch

SECONDS = 0.5
"""How long something is run for it."""
_LOOK_S, _PATIENCE_S = 0.02, 0.5
"""How often the counter is looked at, and for how long one that has moved before may stand still."""


def energy_of(
    run: Callable[[], Any],
    watch: ConditionWatch | None,
    seconds: float = SECONDS,
    clock: Callable[[], float] = time.perf_counter,
) -> float | None:
    """Joules of one run, from many without a pause; None on a device without a counter.

    Counters move about ten times a second: runs are counted from one move to another.
    """
    if watch is None or watch.now().energy_j is None:
        return None
    first = _next_move(run, watch, 0.0, clock)
    last = None if first is None else _next_move(run, watch, seconds, clock)
    return None if first is None or last is None else (last[0] - first[0]) / last[1]


def _next_move(
    run: Callable[[], Any], watch: ConditionWatch, after_s: float, clock: Callable[[], float]
) -> tuple[float, int] | None:
    """Where the counter moves to, after so long, and how many runs that took; None if it stands still."""
    began, runs, last = clock(), 0, watch.now().energy_j
    while (looked := clock()) < began + after_s + _PATIENCE_S:
        while clock() < looked + _LOOK_S:
            run()
            runs += 1
        now = watch.now().energy_j
        if last is not None and now is not None and now > last and clock() >= began + after_s and runs:
            return now, runs
        last = now
    return None
