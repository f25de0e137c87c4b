"""What each kernel takes inside the running model: caches are as its neighbours leave them."""

import time
from collections.abc import Sequence

from tuneloom.model import ModelRecipe
from tuneloom.tuners.tvm.boards.bench import board_session
from tuneloom.tuners.tvm.lowering.tasks import kernel_calls, kernel_key
from tuneloom.tuners.tvm.models.compiling.kernel_times import kernel_times
from tuneloom.tuners.tvm.models.compiling.running import Array, RunningModel
from tuneloom.tuners.tvm.models.making.compiled import instead_model, tuned_model
from tuneloom.tuners.tvm.models.making.lowered import lowered_model
from tuneloom.tuners.tvm.models.making.made import MODELS
from tuneloom.tuners.tvm.models.precision.samples import values_for

_TURNS, _FEW, _LONG_S = 5, 3, 3.0
"""Turns of both models; after so many seconds, few are enough."""
_NOISE = 1.05  # slower by less than this may be chance


def slower_in_model(
    recipe: ModelRecipe,
    schedules: dict[str, str],
    tasks: Sequence[str],
    instead: dict[str, str],
    seed: int,
) -> dict[str, float]:
    """Of these tasks, those whose kernel in the model is slower than what would replace it.

    With each comes what one run of the replacement takes there, in seconds.

    `instead` are all schedules of the model with other ones for these tasks, or none: both
    models have the same kernels by name, each among the same neighbours.
    """
    if board_session() is not None:
        return {}  # the kernels of a model can't be watched over the network
    found: dict[str, float] = {}
    for variant in recipe.variants():
        found |= _slower(variant, schedules, tasks, instead, seed)
    return found


def _slower(
    recipe: ModelRecipe,
    schedules: dict[str, str],
    tasks: Sequence[str],
    instead: dict[str, str],
    seed: int,
) -> dict[str, float]:
    tuned = tuned_model(recipe, schedules)
    lowered = lowered_model(recipe)
    values = values_for(recipe, lowered.inputs, seed)
    other = instead_model(recipe, instead)
    MODELS.of(recipe).instead = None  # it was made for this
    given, own = times_in_turn(tuned.open_here(), other.open_here(), values)
    names: dict[str, list[str]] = {}
    for name in kernel_calls(lowered.module):
        names.setdefault(kernel_key(lowered.module[name], lowered.target), []).append(name)

    def each(times: dict[str, float], task: str) -> float:
        found = names.get(task, ())
        return sum(times.get(name, 0.0) for name in found) / max(1, len(found))

    return {task: each(own, task) for task in tasks if each(given, task) > _NOISE * each(own, task) > 0}


def times_in_turn(
    one: RunningModel, other: RunningModel, values: Sequence[Array]
) -> tuple[dict[str, float], dict[str, float]]:
    """Seconds of every kernel of two models that take turns, so that a slow moment hits both."""
    best: tuple[dict[str, float], dict[str, float]] = ({}, {})
    begun = time.perf_counter()
    for turn in range(_TURNS):
        if turn >= _FEW and time.perf_counter() - begun > _LONG_S:
            break
        for times, model in zip(best, (one, other), strict=True):
            for name, seconds in kernel_times(model, values).items():
                times[name] = min(seconds, times.get(name, seconds))
    return best
