"""A model as a tuning run had it at some moment: compiled with the best schedules known by then.

Both sides of a comparison are made in the same way, best single trials without the contest
that ends a run, and kernels without a trial as their template guesses them; then they are
timed in turn in this process.
"""

import os
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from statistics import mean

from transfer_runs import Run, tuning_times
from tuneloom.backends.resolving import resolve_target
from tuneloom.compiler.fast_import import load_tvm
from tuneloom.store import open_store
from tuneloom.tuners.tvm.importing.sources import import_model
from tuneloom.tuners.tvm.lowering.graph import LowerOptions, lower
from tuneloom.tuners.tvm.models.compiling.building import build_model
from tuneloom.tuners.tvm.models.compiling.running import RunningModel
from tuneloom.tuners.tvm.models.precision.samples import seeded_inputs

ROUNDS = 60
LONGEST_S = 6.0
_ENOUGH = 1.15  # how exactly the time to match is looked for


def schedules_at(place: Path, run: Run, seconds: float) -> dict[str, str]:
    """The best trace of every task that had a trial so many seconds after the import."""
    store = open_store(place)
    try:
        records = store.trials(run.job)
        _, times = tuning_times(store, run.run, records)
    finally:
        store.close()
    best: dict[str, tuple[float, str]] = {}
    for at_s, record in zip(times, records, strict=True):
        if at_s <= seconds and record.seconds is not None:
            found = (record.seconds, record.trial.candidate.configuration)
            best[record.task_key] = min(found, best.get(record.task_key, found))
    return {key: trace for key, (_, trace) in best.items()}


class Compared:
    """One model, imported once, in which states of runs are compared."""

    def __init__(self, model: str) -> None:
        options = LowerOptions(layout="blocked")
        self._lowered = lower(import_model(f"zoo:{model}", {}), resolve_target("cpu"), options)
        values = seeded_inputs(self._lowered.inputs, seed=1)
        self._tensors = [load_tvm().runtime.tensor(value) for value in values]

    def compiled(self, schedules: Mapping[str, str]) -> RunningModel:
        """The model with these schedules, ready to run."""
        return build_model(self._lowered, dict(schedules), guess=True).open_here()

    def in_turn(self, one: RunningModel, other: RunningModel) -> tuple[float, float, float]:
        """Seconds of both on the last core, their undisturbed quarter of runs in turn, and the ratio."""
        cores = os.sched_getaffinity(0)
        os.sched_setaffinity(0, sorted(cores)[-1:])
        try:
            pairs = self._pairs(one, other)
        finally:
            os.sched_setaffinity(0, cores)
        first, second = (_undisturbed([pair[n] for pair in pairs]) for n in (0, 1))
        return first, second, first / second

    def _pairs(self, one: RunningModel, other: RunningModel) -> list[tuple[float, float]]:
        self._timed(one), self._timed(other)
        pairs: list[tuple[float, float]] = []
        while len(pairs) < ROUNDS and (len(pairs) < 3 or sum(map(sum, pairs)) < LONGEST_S):
            pairs.append((self._timed(one), self._timed(other)))
        return pairs

    def _timed(self, model: RunningModel) -> float:
        started = time.perf_counter()
        model.invoke(self._tensors)
        return time.perf_counter() - started


def _undisturbed(times: Sequence[float]) -> float:
    """The mean of the fastest quarter: neighbours only ever slow a run down."""
    return mean(sorted(times)[: max(1, len(times) // 4)])


def first_match(ratio_at: Callable[[float], float], longest: float) -> tuple[float, bool]:
    """At which multiple the ratio falls to 1, found by halving; and whether it does at all.

    Without a match the answer is how far was looked. A match at once is told as 1.
    """
    if ratio_at(1.0) <= 1.0 or longest <= 1.0:
        return 1.0, ratio_at(1.0) <= 1.0
    if ratio_at(longest) > 1.0:
        return longest, False
    low, high = 1.0, longest
    while high / low > _ENOUGH:
        middle = (low * high) ** 0.5
        low, high = (middle, high) if ratio_at(middle) > 1.0 else (low, middle)
    return high, True
