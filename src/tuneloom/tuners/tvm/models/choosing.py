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
from tuneloom.tuners.tvm.models import stages
from tuneloom.tuners.tvm.models.differences import relative_difference
from tuneloom.tuners.tvm.models.final import Array, CompiledModel
from tuneloom.tuners.tvm.models.kernel_times import foreign_shares
from tuneloom.tuners.tvm.models.own_runtime import all_in_turn, warmed
from tuneloom.tuners.tvm.models.rivals import open_rival

_SECONDS = 1.0
_MARGIN = 1.02
"""By how much the model has to be faster for TVM to lose it: less may be chance."""
_TOLERANCE = 1e-3
RUNTIME = "onnxruntime"


def choose(recipe: ModelRecipe, schedules: dict[str, str], seed: int, device: str) -> Handover | None:
    """What to hand over to ONNX Runtime; None where TVM should keep all of it.

    The model as it was chosen is compiled then, under the recipe that leaves the rest.
    """
    divided = recipe.leaving(ALL)
    pairs = list(zip(recipe.variants(), divided.variants(), strict=True))
    rounds = [_round(own, other, schedules, seed, device) for own, other in pairs]
    tvm_s, seconds, rival_s = (_sums([one.times[place] for one in rounds]) for place in range(3))
    difference = max(one.difference for one in rounds)
    if difference > _TOLERANCE or median(tvm_s) < _MARGIN * median(seconds):
        return None
    return Handover(
        left=ALL,
        whole=True,
        seconds=seconds,
        tvm_s=tvm_s,
        rival_s=rival_s,
        difference=difference,
        foreign=tuple(stages.foreign_entries(stages.lowered_model(one)) for one in divided.variants()),
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
    values = stages.seeded_inputs(proposed.inputs, seed)
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
