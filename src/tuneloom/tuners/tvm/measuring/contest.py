"""The best few kernels of a task timed again, side by side."""

from collections.abc import Sequence
from statistics import median

from tuneloom.backends.watching import ConditionWatch
from tuneloom.model import MeasuringRules
from tuneloom.tuners.tvm.measuring.artifacts import BuiltKernel
from tuneloom.tuners.tvm.measuring.energy import energy_of
from tuneloom.tuners.tvm.measuring.profiling import (
    LoadedKernel,
    OwnClockKernel,
    loaded,
    undisturbed,
    watch_of,
)

_ROUNDS, _FEW, _LONG_S = 7, 3, 0.2
"""Rounds, and how many where one of them takes so long."""
_ROUND_MS, _STEADY_ROUND_MS = 5.0, 2.0
_ENERGY_S = 1.0
"""How long a kernel runs for its energy: counters move some ten times a second ..."""
_LAUNCHED_S = 0.02
"""... and for how long it is launched without a look at the clock."""

Timed = LoadedKernel | OwnClockKernel


def contest(payloads: Sequence[bytes], rules: MeasuringRules) -> list[list[float]]:
    """Seconds per run of each artifact, once per round; rounds go through all of them in turn.

    A slow neighbour then slows all contenders of a round, not the luckless one. Rounds on a device that was
    throttled are repeated.
    """
    kernels = [loaded(payload) for payload in payloads]
    return undisturbed(lambda: _rounds(kernels, rules), _watch(payloads))[0]


def contest_of_energy(
    payloads: Sequence[bytes], rules: MeasuringRules
) -> tuple[list[list[float]], list[float | None]]:
    """The same, and the joules of a run of each; None on a device without a counter of energy."""
    kernels, watch = [loaded(payload) for payload in payloads], _watch(payloads)
    seconds, _ = undisturbed(lambda: _rounds(kernels, rules), watch)
    joules = [_joules(kernel, median(times), watch) for kernel, times in zip(kernels, seconds, strict=True)]
    return seconds, joules


def _watch(payloads: Sequence[bytes]) -> ConditionWatch | None:
    return watch_of(BuiltKernel.from_bytes(payloads[0]).device) if payloads else None


def _joules(kernel: Timed, seconds: float, watch: ConditionWatch | None) -> float | None:
    number = max(1, round(_LAUNCHED_S / max(seconds, 1e-9)))
    spent = energy_of(lambda: kernel.time(number=number, repeats=1), watch, _ENERGY_S)
    return None if spent is None else spent / number


def _rounds(kernels: Sequence[Timed], rules: MeasuringRules) -> list[list[float]]:
    firsts = [kernel.time(number=1, repeats=2)[1] for kernel in kernels]
    numbers = [
        max(1, round((_STEADY_ROUND_MS if kernel.steady else _ROUND_MS) / 1e3 / max(first, 1e-9)))
        for kernel, first in zip(kernels, firsts, strict=True)
    ]
    seconds: list[list[float]] = [[] for _ in kernels]
    for _ in range(_how_many(firsts, rules)):
        for kernel, number, times in zip(kernels, numbers, seconds, strict=True):
            times.append(kernel.time(number=number, repeats=1)[0])
    return seconds


def _how_many(firsts: Sequence[float], rules: MeasuringRules) -> int:
    """Rounds for kernels whose first runs took so long."""
    if min(firsts) > rules.run_timeout_s / (4 * _ROUNDS * len(firsts)):
        return 1
    return _FEW if sum(firsts) > _LONG_S else _ROUNDS
