"""The best few kernels of a task timed again, side by side."""

from collections.abc import Sequence

from tuneloom.model import MeasuringRules
from tuneloom.tuners.tvm.measuring.profiling import loaded

_ROUNDS = 7
_ROUND_MS = 5.0


def contest(payloads: Sequence[bytes], rules: MeasuringRules) -> list[list[float]]:
    """Seconds per run of each artifact, once per round; rounds go through all of them in turn.

    A slow neighbour then slows all contenders of a round, not the luckless one.
    """
    kernels = [loaded(payload) for payload in payloads]
    firsts = [kernel.time(number=1, repeats=2)[1] for kernel in kernels]
    numbers = [max(1, round(_ROUND_MS / 1e3 / max(first, 1e-9))) for first in firsts]
    rounds = 1 if min(firsts) > rules.run_timeout_s / (4 * _ROUNDS * len(kernels)) else _ROUNDS
    seconds: list[list[float]] = [[] for _ in kernels]
    for _ in range(rounds):
        for kernel, number, times in zip(kernels, numbers, seconds, strict=True):
            times.append(kernel.time(number=number, repeats=1)[0])
    return seconds
