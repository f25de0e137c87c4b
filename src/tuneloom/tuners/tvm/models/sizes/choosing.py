"""For which sizes of a dimension programs are made, and which of them run each size.

Both are decided by what programs take: by a few probes before tuning, by measurements after it. Nothing
is run here.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import inf

import numpy as np

COPYING = 1.02
"""What padding and dividing add to a run."""
CALL_S = 5e-5
"""What each further run of a divided one adds."""
MOST_PROGRAMS = 32
_FEW_PROGRAMS = 8  # may be made for any budget: first guesses take less than padding far
_CANDIDATES = 48
"""How many sizes are looked at, in equal steps and in equal ratios."""
_SAMPLED = 96
"""For how many sizes at most an expectation is made."""
_WORTH = 0.002
"""By which part a further program has to shorten runs on average."""
_ROUND = 8
"""Vectors and tiles divide larger sizes that are multiples of this."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Dimension:
    """Between which sizes a dimension varies, and how a size may run in programs of others."""

    low: int
    high: int
    pads: bool
    splits: bool


def size_table(dimension: Dimension, seconds: Mapping[int, float]) -> list[tuple[int, ...]]:
    """For every size, from the least, the sizes of the programs that run it soonest, one after the other.

    The last of them may be larger than what is left. `seconds` is what the program of each size takes.
    """
    costs, firsts = _soonest(dimension, seconds)
    assert all(cost < inf for cost in costs[dimension.low :]), "a size that no program can run"
    return [_followed(size, firsts) for size in range(dimension.low, dimension.high + 1)]


def _followed(size: int, firsts: Sequence[int]) -> tuple[int, ...]:
    found = []
    while size > 0:
        found.append(firsts[size])
        size -= firsts[size]
    return tuple(found)


def _soonest(dimension: Dimension, seconds: Mapping[int, float]) -> tuple[list[float], list[int]]:
    """What every size from 0 takes at best, and with which program that begins."""
    programs = sorted(seconds.items())
    costs, firsts = [0.0], [0]
    for size in range(1, dimension.high + 1):
        best, first = inf, 0
        for own, taken in programs:
            if own == size:
                cost = taken
            elif own > size:
                cost = COPYING * taken if dimension.pads else inf
            else:
                cost = COPYING * taken + CALL_S + costs[size - own] if dimension.splits else inf
            if cost < best:
                best, first = cost, own
        costs.append(best)
        firsts.append(first)
    return costs, firsts


def most_programs(trials: int, kernels: int, room: int) -> int:
    """How many programs may be made: each kernel should have a trial, and all have to fit into memory."""
    return max(1, min(MOST_PROGRAMS, max(_FEW_PROGRAMS, trials // kernels), room))


def choose_sizes(
    dimension: Dimension,
    expected_s: Callable[[int], float],
    most: int,
    asked: Mapping[int, int],
    least: int = 1,
) -> tuple[int, ...]:
    """The sizes that programs are made for, the greatest first; at most so many, none below `least`.

    A program is worth its trials if it shortens runs: of the sizes that were `asked` for, by their counts,
    or of all sizes alike. Where nothing can be padded every size needs its own.
    """
    if not dimension.pads:
        return tuple(range(dimension.high, dimension.low - 1, -1))
    weights = _weights(dimension, asked)
    candidates = [max(least, size) for size in _candidates(dimension, asked)]
    chosen = {dimension.high: expected_s(dimension.high)}
    loss = _loss(dimension, chosen, weights, expected_s)
    while len(chosen) < most:
        tried = {
            size: _loss(dimension, {**chosen, size: expected_s(size)}, weights, expected_s)
            for size in candidates
            if size not in chosen
        }
        best = min(tried, key=lambda size: tried[size], default=None)
        if best is None or tried[best] > loss * (1 - _WORTH):
            break
        chosen[best], loss = expected_s(best), tried[best]
    return tuple(sorted(chosen, reverse=True))


def interpolated(probes: Mapping[int, float]) -> Callable[[int], float]:
    """What a program of any size should take, by those of a few."""
    sizes = sorted(probes)
    times = [probes[size] for size in sizes]
    return lambda size: float(np.interp(size, sizes, times))


def _candidates(dimension: Dimension, asked: Mapping[int, int]) -> list[int]:
    low, high = dimension.low, dimension.high
    spread = {*np.linspace(low, high, _CANDIDATES), *np.geomspace(low, high, _CANDIDATES)}
    rounded = {round(size) if size < 2 * _ROUND else round(size / _ROUND) * _ROUND for size in spread}
    often = sorted(asked, key=lambda size: asked[size], reverse=True)[:_CANDIDATES]
    return sorted({low, *often, *(size for size in rounded if low <= size <= high)})


def _weights(dimension: Dimension, asked: Mapping[int, int]) -> dict[int, float]:
    known = {size: float(count) for size, count in asked.items() if dimension.low <= size <= dimension.high}
    if known:
        return known
    return dict.fromkeys(map(int, np.linspace(dimension.low, dimension.high, _SAMPLED)), 1.0)


def _loss(
    dimension: Dimension,
    seconds: Mapping[int, float],
    weights: Mapping[int, float],
    expected_s: Callable[[int], float],
) -> float:
    """How many times longer runs take than in programs of their own, on average."""
    total = sum(weights.values())
    if dimension.splits:
        costs = _soonest(dimension, seconds)[0]
        return sum(w * costs[size] / expected_s(size) for size, w in weights.items()) / total
    return sum(w * _padded(size, seconds) / expected_s(size) for size, w in weights.items()) / total


def _padded(size: int, seconds: Mapping[int, float]) -> float:
    if size in seconds:
        return seconds[size]
    return COPYING * min(taken for own, taken in seconds.items() if own > size)
