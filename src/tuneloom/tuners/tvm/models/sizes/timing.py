"""What the programs of a dimension that varies take, measured in turns."""

import time
from collections.abc import Callable, Sequence
from math import inf

_ENOUGH_S = 3.0
_LEAST, _MOST = 3, 30
"""Rounds."""
_RUNS = 2  # in a row: the first may find the memory of another program in the caches


def in_rounds(
    timers: Sequence[Callable[[], float]], clock: Callable[[], float] = time.perf_counter
) -> tuple[float, ...]:
    """The best run of each, in seconds.

    Which program runs a size depends on small differences. Timed one after the other, a program that had
    its turn while the machine was slow would lose to all others.
    """
    best, rounds, ends = [inf] * len(timers), 0, clock() + _ENOUGH_S
    while rounds < _LEAST or (rounds < _MOST and clock() < ends):
        best = [
            min(so_far, *(timer() for _ in range(_RUNS))) for so_far, timer in zip(best, timers, strict=True)
        ]
        rounds += 1
    return tuple(best)
