"""What of a tuned model is left to ONNX Runtime because it is faster there.

Whatever is left there has to prove it: the model as it would be deployed is timed in turn with TVM alone and
with ONNX Runtime alone.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

import numpy as np

from tuneloom.errors import reason_of
from tuneloom.model import Handover, ModelRecipe, RuntimeChoice
from tuneloom.tuners.tvm.importing.onnx.cutting import ALL
from tuneloom.tuners.tvm.importing.sources import clean_graph
from tuneloom.tuners.tvm.models.compiling.compiled import CompiledModel, foreign_entries
from tuneloom.tuners.tvm.models.compiling.differences import relative_difference
from tuneloom.tuners.tvm.models.compiling.kernel_times import foreign_shares
from tuneloom.tuners.tvm.models.compiling.running import Array
from tuneloom.tuners.tvm.models.making.compiled import tuned_model
from tuneloom.tuners.tvm.models.making.lowered import lowered_model, tolerance_of
from tuneloom.tuners.tvm.models.making.made import MODELS
from tuneloom.tuners.tvm.models.precision.samples import values_for
from tuneloom.tuners.tvm.models.rivals.runtimes import open_rival
from tuneloom.tuners.tvm.models.rivals.segments import slower_nodes
from tuneloom.tuners.tvm.models.rivals.turns import all_in_turn, is_clear, summed, warmed

_SECONDS = 2.0
_QUIET = 25
"""Which percentile of the runs counts: on shared cores the slower half measures the neighbours."""
_MARGIN = 1.02
"""By how much the model has to be faster for TVM to lose it: less may be chance."""
_LEAST_S = 1e-3
"""A model that takes less is not cut: calls of another runtime would count."""
RUNTIME = "onnxruntime"


def choose(
    recipe: ModelRecipe, schedules: dict[str, str], seed: int, pieces: bool = True, whole: bool = True
) -> RuntimeChoice:
    """What to leave to ONNX Runtime: the `whole` model, some `pieces`, if these are wanted, or nothing.

    The model as it was chosen is compiled then, under the recipe that leaves the rest.
    """
    tried, notes = [_tried(recipe, ALL, schedules, seed)] if whole else [], []
    try:
        found = _pieces(recipe, schedules, seed) if pieces else []
        tried += [_tried(recipe, left, schedules, seed) for left in found]
    except Exception as error:  # the choice between all and nothing remains
        notes.append(f"pieces of the model could not be tried in ONNX Runtime: {reason_of(error)}")
        MODELS.forget(recipe.leaving(ALL))
    best = taken(tried, tolerance_of(recipe))
    if not tried or best is not tried[-1]:
        MODELS.forget(recipe.leaving(ALL))  # another one is compiled, or none is wanted
    notes += [] if best else inexact(tried, tolerance_of(recipe))
    rejected = tuple(one for one in tried if one is not best)
    return RuntimeChoice(handover=best, rejected=rejected, notes=tuple(notes))


def taken(tried: Sequence[Handover], tolerance: float) -> Handover | None:
    """The proposal to take: the fastest of those whose outputs agree, if it is faster than TVM alone.

    Pieces that are slower than ONNX Runtime alone, timed in the same minute, are no gain.
    """
    exact = [one for one in tried if one.difference <= tolerance]
    gains = [one for one in exact if one.whole or _quiet(one.seconds) <= _quiet(one.rival_s)]
    best = min(gains, key=_slowness, default=None)
    return best if best is not None and _faster(best) else None


def inexact(tried: Sequence[Handover], tolerance: float) -> list[str]:
    """Why a model that is faster in ONNX Runtime stays in TVM all the same, in words."""
    return [
        f"ONNX Runtime is faster, but its outputs differ by {one.difference:.1e}: everything stays in TVM"
        for one in tried
        if one.whole and one.difference > tolerance and _faster(one)
    ]


def _faster(one: Handover) -> bool:
    return _quiet(one.tvm_s) >= _MARGIN * _quiet(one.seconds)


def _slowness(one: Handover) -> float:
    """What the model takes as it would be deployed, against TVM alone."""
    return _quiet(one.seconds) / _quiet(one.tvm_s)


def _quiet(times: Sequence[float]) -> float:
    return float(np.percentile(times, _QUIET))


def _pieces(recipe: ModelRecipe, schedules: dict[str, str], seed: int) -> list[tuple[str, ...]]:
    """The pieces of a model that ONNX Runtime runs faster; none under several shapes or in int8."""
    if recipe.more_shapes or recipe.dtype != "float32":
        return []
    tuned = tuned_model(recipe, schedules)
    values = values_for(recipe, tuned.inputs, seed)
    run = _run(tuned, values)
    warmed(run)
    if median(all_in_turn([run], 0.0)[0]) < _LEAST_S:
        return []
    found = slower_nodes(recipe, clean_graph(recipe.source, recipe.shapes), schedules, values)
    return [found] if found else []


def _tried(recipe: ModelRecipe, left: tuple[str, ...], schedules: dict[str, str], seed: int) -> Handover:
    """The model with these nodes left to ONNX Runtime, timed in turn with both alternatives."""
    MODELS.forget(recipe.leaving(left))
    pairs = list(zip(recipe.variants(), recipe.leaving(left).variants(), strict=True))
    rounds = [_round(own, other, schedules, seed) for own, other in pairs]
    # The model as a whole in ONNX Runtime is what ONNX Runtime alone is.
    places = (0, 1, 1) if left == ALL else (0, 1, 2)
    tvm_s, seconds, rival_s = (summed([one.times[place] for one in rounds]) for place in places)
    return Handover(
        left=left,
        whole=left == ALL,
        seconds=seconds,
        tvm_s=tvm_s,
        rival_s=rival_s,
        difference=max(one.difference for one in rounds),
        foreign=tuple(foreign_entries(lowered_model(other).foreign) for _, other in pairs),
        shares={name: share for one in rounds for name, share in one.shares.items()},
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Round:
    """One variant of a model: seconds of TVM alone, of what was proposed, and of ONNX Runtime alone."""

    times: list[list[float]]
    difference: float
    shares: dict[str, float]


def _round(recipe: ModelRecipe, divided: ModelRecipe, schedules: dict[str, str], seed: int) -> _Round:
    tuned = tuned_model(recipe, schedules)
    proposed = tuned_model(divided, schedules)
    values = values_for(recipe, proposed.inputs, seed)
    runs = [_run(tuned, values), _run(proposed, values)]
    if divided.left != ALL:
        rival = open_rival(RUNTIME, recipe.source, proposed.inputs, proposed.outputs, recipe.cores)
        runs.append(lambda: rival(values))
    expected, got, *_ = map(warmed, runs)
    return _Round(
        times=all_in_turn(runs, _SECONDS, is_clear),
        difference=max(map(relative_difference, got, expected)),
        shares=foreign_shares(proposed, values),
    )


def _run(model: CompiledModel, values: list[Array]) -> Callable[[], Any]:
    opened = model.deployed()
    return lambda: opened.run(values)
