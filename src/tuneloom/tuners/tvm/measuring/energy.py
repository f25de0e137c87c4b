"""What a run costs in energy, by a counter of the device."""

import time
from collections.abc import Callable
from typing import Any

from tuneloom.backends.watching import ConditionWatch

SECONDS = 2.0
"""How long something is run for it: counters move about ten times a second."""


def energy_of(
    run: Callable[[], Any],
    watch: ConditionWatch | None,
    seconds: float = SECONDS,
    clock: Callable[[], float] = time.perf_counter,
) -> float | None:
    """Joules of one run, from many without a pause; None on a device without a counter."""
    before = None if watch is None else watch.now().energy_j
    if watch is None or before is None:
        return None
    runs, ends = 0, clock() + seconds
    while clock() < ends:
        run()
        runs += 1
    after = watch.now().energy_j
    return (after - before) / runs if runs and after is not None and after > before else None
