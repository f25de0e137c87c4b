"""The tuned model beside other runtimes: what its user would run instead."""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from statistics import median
from typing import Any

import numpy as np

from tuneloom.errors import InputError, TuneloomError, reason_of
from tuneloom.model import TF32_TYPES, ModelRecipe, OwnRuntime
from tuneloom.tuners.tvm.measuring.stolen import stolen_ticks
from tuneloom.tuners.tvm.models.compiling.compiled import CompiledModel
from tuneloom.tuners.tvm.models.compiling.differences import relative_difference
from tuneloom.tuners.tvm.models.compiling.running import Array, OpenModel, clock_of, timer_of
from tuneloom.tuners.tvm.models.rivals.runtimes import (
    Comparable,
    competitors,
    installed_rivals,
    open_rival,
    rival_of,
)
from tuneloom.tuners.tvm.models.rivals.torch_programs import (
    TorchProgram,
    compiled_modes,
    computes_on,
    why_not,
    within,
)

Times = list[list[float]]
"""Seconds of every turn, for each of the things that are timed."""
_LEAST, _FEW = 5, 3
"""So many turns at least, and so many where these take longer than all turns should."""
_LATE, _SURELY_LATE_S = 3.0, 1.0
"""After so many times the time for all turns, and so many seconds, few are enough."""
_LONG_S = 0.1
"""A run so long is hardly changed by what ran before it."""
_MOST_TURNS = 10_000
_WARM_UPS = 2
_PREPARED = 0.5
"""Where a run takes less than this part of the one before, that one prepared something besides."""
_TURN_S = 0.02
_LOOK_S = 0.005
_MOST_LOOKS = 200
_CLEAR_TURNS, _CLEAR_MARGIN = 10, 1.2
"""After so many turns it is clear who is faster if nearly all runs of one side beat the other by so much."""
_READY_S = 300.0
"""How long another runtime may take to compile a model and run it a few times."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Beside:
    """A model in another runtime, ready to be timed, and how far its outputs are from ours."""

    timer: Callable[[], float]
    difference: float


def against_runtimes(
    recipe: ModelRecipe,
    compiled: CompiledModel,
    running: OpenModel,
    values: Sequence[Array],
    seconds: float,
) -> OwnRuntime | str:
    """The tuned model and all installed runtimes that run it, timed in turn with as many threads.

    Where a runtime refuses the model, or these values, there is nothing to compare with, and nothing is
    wrong with the tuned model: then it is the reason, which is empty if no runtime is installed.
    """
    opened: dict[str, tuple[Callable[[], list[Array]], list[Array]]] = {}
    refusals: list[str] = []
    for name in installed_rivals(recipe.source):
        try:
            rival = open_rival(name, recipe.source, compiled.inputs, compiled.outputs, recipe.cores)
            run = partial(rival, values)
            opened[name] = run, warmed(run)
        except TuneloomError as error:
            refusals.append(str(error))
        except Exception as error:  # whatever it likes, for instance about values that are out of range
            refusals.append(f"{name} fails: {reason_of(error)}")
    if not opened:
        return next(iter(refusals), "")
    ours = warmed(lambda: running.run(values))
    runs = [lambda: running.run(values), *(run for run, _ in opened.values())]
    tuned_s, *theirs = all_in_turn(runs, seconds, is_clear, now=clock_of(running))
    return OwnRuntime.fastest(
        [
            OwnRuntime(
                name=name,
                difference=_difference(ours, expected),
                seconds=tuple(times),
                tuned_s=tuple(tuned_s),
            )
            for (name, (_, expected)), times in zip(opened.items(), theirs, strict=True)
        ]
    )


def against_gpu_runtimes(
    recipe: ModelRecipe,
    compiled: CompiledModel,
    running: OpenModel,
    values: Sequence[Array],
    seconds: float,
) -> OwnRuntime | str:
    """The same on a GPU: against the best that torch.compile makes of a program, or ONNX Runtime of a file.

    Inputs stay on the GPU. A text says what is missing for that; it is empty for other models.
    """
    try:
        ways = _on_gpu(recipe, compiled)
    except TuneloomError as error:
        return str(error)
    if not ways:
        return ""
    found = opened_beside(running, values, ways)
    opened = {name: each for name, each in found.items() if isinstance(each, Beside)}
    if not opened:
        return "; ".join(f"{name} fails: {why}" for name, why in found.items())
    timers = [running.timer(values), *(each.timer for each in opened.values())]
    tuned_s, *theirs = all_in_turn(timers, seconds)
    times = dict(zip(opened, theirs, strict=True))
    best = min(times, key=lambda name: median(times[name]))
    return OwnRuntime(
        name=f"{best.removesuffix(')')}, {_precision(recipe)})",
        difference=opened[best].difference,
        seconds=tuple(times[best]),
        tuned_s=tuple(tuned_s),
    )


def _on_gpu(recipe: ModelRecipe, compiled: CompiledModel) -> Mapping[str, Callable[[], OpenModel]]:
    """What somebody would run on the GPU instead; raises InputError if that is not installed."""
    device, runtime = compiled.device, rival_of(recipe.source)
    how: dict[str, Any] = {"device": device, "threads": recipe.cores, "dtype": recipe.dtype}
    if runtime == "onnxruntime":
        return competitors(
            runtime,
            Comparable(model=recipe.source, inputs=compiled.inputs, outputs=compiled.outputs, **how),
        )
    modes = compiled_modes(compiled.inputs, device) if runtime == "torch" else []
    if modes and not computes_on(device):
        raise InputError("PyTorch can't use this GPU; install a PyTorch for it: https://pytorch.org")
    return {mode.name: partial(TorchProgram, recipe.source, mode, **how) for mode in modes}


def _precision(recipe: ModelRecipe) -> str:
    """In which numbers the other runtime computes, where its name does not say it."""
    tf32 = recipe.dtype in TF32_TYPES
    halved = recipe.dtype != "float32" and not tf32 and rival_of(recipe.source) == "onnxruntime"
    return f"{'in float32, ' if halved else ''}TF32 {'on' if tf32 else 'off'}"


def opened_beside(
    ours: OpenModel, values: Sequence[Array], ways: Mapping[str, Callable[[], OpenModel]]
) -> dict[str, Beside | str]:
    """Open a model in several ways, each run on the same values; a text says why one can't be used.

    Raises TuneloomError where a way says itself what is wrong.
    """
    got = warmed(lambda: ours.run(values))
    return {name: _beside(way, got, values) for name, way in ways.items()}


def _beside(way: Callable[[], OpenModel], got: list[Array], values: Sequence[Array]) -> Beside | str:
    try:
        with within(_READY_S):
            rival = way()
            expected = warmed(lambda: rival.run(values))
        return Beside(timer=rival.timer(values), difference=_difference(got, expected))
    except TuneloomError:
        raise
    except Exception as error:  # whatever it likes
        return why_not(error)


def _difference(got: Sequence[Array], expected: Sequence[Array]) -> float:
    return max(relative_difference(ours, theirs) for ours, theirs in zip(got, expected, strict=True))


def warmed(run: Callable[[], Any], now: Callable[[], float] = time.perf_counter) -> Any:
    """What something returns after three runs, or after two long ones of which the first prepared nothing."""
    took: list[float] = []
    while True:
        begun = now()
        result = run()
        took.append(now() - begun)
        if len(took) > _WARM_UPS or (len(took) > 1 and took[-1] > max(_LONG_S, _PREPARED * took[-2])):
            return result


def all_in_turn(
    runs: Sequence[Callable[[], Any]],
    seconds: float,
    clear: Callable[[Times], bool] = lambda _: False,
    stolen: Callable[[], int] = stolen_ticks,
    now: Callable[[], float] = time.perf_counter,
) -> Times:
    """What a run of each takes, turn by turn, for so long or until it is clear; at least five turns or three.

    A turn begins when the threads of the one before have come to rest, and with a run that does not
    count, unless it is long: a pool of threads waits for its next work by spinning, on cores that now belong
    to another.
    Turns in which a hypervisor took the cores away don't count if five others are there, for which it
    may take twice as long. `now` is the clock by which runs are timed.
    """
    turns = _Turns()
    begun = time.perf_counter()
    while turns.are_missing(time.perf_counter() - begun, seconds) and not clear(turns.counting()):
        before = stolen()
        turn = tuple(_one_side(run, now) for run in runs)
        (turns.quiet if stolen() == before else turns.disturbed).append(turn)
    return turns.counting()


def is_clear(times: Times) -> bool:
    """Whether more turns would hardly change where the first stands: ahead of all others, or behind one.

    Behind several, all of them get their turns, since one of these is faster than the others.
    """
    if len(times) < 2 or len(times[0]) < _CLEAR_TURNS:
        return False
    (low, high), *others = (np.percentile(one, [10, 90]) for one in times)
    if all(high * _CLEAR_MARGIN < other_low for other_low, _ in others):
        return True
    return len(others) == 1 and bool(others[0][1] * _CLEAR_MARGIN < low)


class _Turns:
    """The times of all sides, one entry a turn."""

    def __init__(self) -> None:
        self.quiet: list[tuple[float, ...]] = []
        self.disturbed: list[tuple[float, ...]] = []

    def are_missing(self, since_s: float, seconds: float) -> bool:
        """Whether there should be more, after some time of so much."""
        made = len(self.quiet) + len(self.disturbed)
        enough_s = seconds if len(self.quiet) >= _LEAST else 2 * seconds
        late = since_s > max(_LATE * seconds, _SURELY_LATE_S)
        if made < (_FEW if late else _LEAST):
            return True
        return since_s < enough_s and made < _MOST_TURNS

    def counting(self) -> Times:
        """Those that count, by side."""
        counting = self.quiet if len(self.quiet) >= _LEAST else [*self.quiet, *self.disturbed]
        return [list(side) for side in zip(*counting, strict=True)]


def summed(times: Sequence[Sequence[float]]) -> tuple[float, ...]:
    """Runs of several things after each other, as one run of all of them."""
    return tuple(map(sum, zip(*times, strict=False)))


def _one_side(run: Callable[[], Any], now: Callable[[], float]) -> float:
    wait_for_rest()
    first_s = timer_of(run, now)()
    return first_s if first_s > _LONG_S else _one_turn(run, now)


def wait_for_rest() -> None:
    """Return when no thread of this process is busy, or after a second if one never rests."""
    for _ in range(_MOST_LOOKS):
        used_s = time.process_time()
        time.sleep(_LOOK_S)
        if time.process_time() - used_s < _LOOK_S / 4:
            return


def _one_turn(run: Callable[[], Any], now: Callable[[], float]) -> float:
    """The median of a few runs without a pause."""
    timer = timer_of(run, now)
    times: list[float] = []
    while sum(times) < _TURN_S:
        times.append(timer())
    return median(times)
