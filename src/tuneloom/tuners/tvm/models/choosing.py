"""What of a tuned model is left to ONNX Runtime because it is faster there.

Whatever is left there has to prove it: the model as it would be deployed is timed in turn with TVM alone and
with ONNX Runtime alone.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

from tuneloom.model import Handover, ModelRecipe
from tuneloom.tuners.tvm.importing.cutting import ALL
from tuneloom.tuners.tvm.importing.sources import clean_graph
from tuneloom.tuners.tvm.models import stages
from tuneloom.tuners.tvm.models.differences import relative_difference
from tuneloom.tuners.tvm.models.final import Array, CompiledModel
from tuneloom.tuners.tvm.models.kernel_times import foreign_shares
from tuneloom.tuners.tvm.models.own_runtime import all_in_turn, warmed
from tuneloom.tuners.tvm.models.rivals import open_rival
from tuneloom.tuners.tvm.models.segments import slower_nodes

_SECONDS = 1.0
_MARGIN = 1.02
"""By how much the model has to be faster for TVM to lose it: less may be chance."""
_LEAST_S = 1e-3
"""A model that takes less is not cut: calls of another runtime would count."""
RUNTIME = "onnxruntime"


def choose(recipe: ModelRecipe, schedules: dict[str, str], seed: int, device: str) -> Handover | None:
    """What to leave to ONNX Runtime: all of the model, some pieces, or nothing (None).

    The model as it was chosen is compiled then, under the recipe that leaves the rest.
    """
    tried = [_tried(recipe, ALL, schedules, seed, device)]
    try:
        tried += [
            _tried(recipe, left, schedules, seed, device) for left in _pieces(recipe, schedules, seed, device)
        ]
    except Exception:  # pieces that can't be compiled by themselves leave the choice between all and nothing
        stages.forget(recipe.leaving(ALL))
    exact = [one for one in tried if one.difference <= stages.tolerance_of(recipe)]
    best = min(exact, key=lambda one: median(one.seconds) / median(one.tvm_s), default=None)
    if best is None or median(best.tvm_s) < _MARGIN * median(best.seconds):
        return None
    if best is not tried[-1]:
        stages.forget(recipe.leaving(ALL))  # another one is compiled
    return best


def _pieces(recipe: ModelRecipe, schedules: dict[str, str], seed: int, device: str) -> list[tuple[str, ...]]:
    """The pieces of a model that ONNX Runtime runs faster; none under several shapes or in int8."""
    if recipe.more_shapes or recipe.dtype != "float32":
        return []
    tuned = stages.tuned_model(recipe, schedules)
    values = stages.values_for(recipe, tuned.inputs, seed)
    run = _run(tuned, device, values)
    warmed(run)
    if median(all_in_turn([run], 0.0)[0]) < _LEAST_S:
        return []
    found = slower_nodes(recipe, clean_graph(recipe.source, recipe.shapes), schedules, values)
    return [found] if found else []


def _tried(
    recipe: ModelRecipe, left: tuple[str, ...], schedules: dict[str, str], seed: int, device: str
) -> Handover:
    """The model with these nodes left to ONNX Runtime, timed in turn with both alternatives."""
    stages.forget(recipe.leaving(left))
    pairs = list(zip(recipe.variants(), recipe.leaving(left).variants(), strict=True))
    rounds = [_round(own, other, schedules, seed, device) for own, other in pairs]
    tvm_s, seconds, rival_s = (_sums([one.times[place] for one in rounds]) for place in range(3))
    return Handover(
        left=left,
        whole=left == ALL,
        seconds=seconds,
        tvm_s=tvm_s,
        rival_s=rival_s,
        difference=max(one.difference for one in rounds),
        foreign=tuple(stages.foreign_entries(stages.lowered_model(other)) for _, other in pairs),
        shares={name: share for one in rounds for name, share in one.shares.items()},
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Round:
    """One variant of a model: seconds of TVM alone, of what was proposed, and of ONNX Runtime alone."""

    times: list[list[float]]
    difference: float
    shares: dict[str, float]


def _round(
    recipe: ModelRecipe, divided: ModelRecipe, schedules: dict[str, str], seed: int, device: str
) -> _Round:
    tuned = stages.tuned_model(recipe, schedules)
    proposed = stages.tuned_model(divided, schedules)
    values = stages.values_for(recipe, proposed.inputs, seed)
    rival = open_rival(RUNTIME, recipe.source, proposed.inputs, proposed.outputs, recipe.cores)
    runs = [_run(tuned, device, values), _run(proposed, device, values), lambda: rival(values)]
    expected, got, _ = map(warmed, runs)
    return _Round(
        times=all_in_turn(runs, _SECONDS),
        difference=max(map(relative_difference, got, expected)),
        shares=foreign_shares(proposed, device, values),
    )


def _run(model: CompiledModel, device: str, values: list[Array]) -> Callable[[], Any]:
    opened = model.open_here(device)
    return lambda: opened.run(values)


def _sums(times: Sequence[Sequence[float]]) -> tuple[float, ...]:
    return tuple(map(sum, zip(*times, strict=False)))
