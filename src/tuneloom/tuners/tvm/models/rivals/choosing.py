"""What of a tuned model is left to other runtimes because it is faster there.

Whatever is left there has to prove it: the model as it would be deployed is timed in turn with TVM alone and
with the runtimes that came near the fastest when they ran it alone.
"""

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from tuneloom.errors import reason_of
from tuneloom.model import Handover, ModelRecipe, RuntimeChoice
from tuneloom.model.opened import title_of
from tuneloom.tuners.tvm.importing.sources import clean_graph
from tuneloom.tuners.tvm.models.compiling.compiled import CompiledModel, foreign_entries
from tuneloom.tuners.tvm.models.compiling.differences import relative_difference
from tuneloom.tuners.tvm.models.compiling.kernel_times import foreign_shares
from tuneloom.tuners.tvm.models.compiling.running import Array
from tuneloom.tuners.tvm.models.making.compiled import tuned_model
from tuneloom.tuners.tvm.models.making.lowered import tolerance_of
from tuneloom.tuners.tvm.models.making.made import MODELS
from tuneloom.tuners.tvm.models.precision.samples import values_for
from tuneloom.tuners.tvm.models.rivals.runtimes import installed_rivals
from tuneloom.tuners.tvm.models.rivals.segments import slower_nodes
from tuneloom.tuners.tvm.models.rivals.turns import all_in_turn, is_clear, summed, warmed

_SECONDS = 2.0
_QUIET = 25
"""Which percentile of the runs counts: on shared cores the slower half measures the neighbours."""
_MARGIN = 1.01
"""By how much the model has to be faster for TVM to lose it: less may be chance."""
RUNTIME = "onnxruntime"


def choose(
    recipe: ModelRecipe,
    schedules: dict[str, str],
    seed: int,
    pieces: bool = True,
    whole: bool = True,
    share: float = 1.0,
    near: Sequence[str] | None = None,
) -> RuntimeChoice:
    """What to leave to other runtimes: the `whole` model, some `pieces`, if these are wanted, or nothing.

    The whole may go to those that are `near` the fastest, by default to any that is installed.
    Pieces are tried if they promise that the model takes less than a `share` of its time, such as that of the
    fastest other runtime. If they were chosen, the model is compiled then under the recipe that leaves them.
    """
    installed = installed_rivals(recipe.source)
    proposals = [Handover.of(name) for name in installed if near is None or name in near]
    notes, cut = [], False
    if pieces and RUNTIME in installed:
        try:
            found = _pieces(recipe, schedules, seed, share)
            proposals, cut = [*proposals, *found], bool(found)
        except Exception as error:  # the choice between all and nothing remains
            notes.append(f"pieces of the model could not be tried in ONNX Runtime: {reason_of(error)}")
            MODELS.forget(recipe.leaving(()))
    if not whole and not cut:
        return RuntimeChoice(notes=tuple(notes))
    tried = _tried(recipe, proposals, schedules, seed)
    best = taken(tried, tolerance_of(recipe))
    for one in tried:
        if not one.whole and one is not best:
            MODELS.forget(one.applied(recipe))
    notes += [] if best else inexact(tried, tolerance_of(recipe))
    rejected = tuple(one for one in tried if one is not best)
    return RuntimeChoice(handover=best, rejected=rejected, notes=tuple(notes))


def taken(tried: Sequence[Handover], tolerance: float) -> Handover | None:
    """The proposal to take: the fastest of those whose outputs agree, if it is faster than TVM alone.

    Pieces that are slower than another runtime alone, timed in the same minute, are no gain.
    """
    exact = [one for one in tried if one.difference <= tolerance]
    gains = [one for one in exact if one.whole or _quiet(one.seconds) <= _quiet(one.rival_s)]
    best = min(gains, key=_slowness, default=None)
    return best if best is not None and _faster(best) else None


def inexact(tried: Sequence[Handover], tolerance: float) -> list[str]:
    """Why a model that is faster in another runtime stays in TVM all the same, in words."""
    return [
        f"{title_of(one.runtime)} is faster, but its outputs differ by {one.difference:.1e}: "
        "everything stays in TVM"
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


def _pieces(recipe: ModelRecipe, schedules: dict[str, str], seed: int, share: float) -> list[Handover]:
    """The pieces of a model that ONNX Runtime runs faster; none under several shapes or in int8."""
    if recipe.more_shapes or recipe.dtype != "float32":
        return []
    tuned = tuned_model(recipe, schedules)
    values = values_for(recipe, tuned.inputs, seed)
    opened = tuned.open_here()
    found = slower_nodes(recipe, clean_graph(recipe.source, recipe.shapes), opened, values, share)
    if not found:
        return []
    MODELS.forget(recipe.leaving(found))
    tuned_model(recipe.leaving(found), schedules)
    return [Handover.of(RUNTIME, left=found)]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Side:
    """A model under one set of shapes, as TVM or somebody else runs it."""

    run: Callable[[], Any]
    outputs: list[Array]
    entries: tuple[dict[str, Any], ...]
    shares: dict[str, float]


def _tried(
    recipe: ModelRecipe, proposals: Sequence[Handover], schedules: dict[str, str], seed: int
) -> list[Handover]:
    """The proposals that can be opened, timed in turn with TVM alone and with each other."""
    ours = _opened(recipe, schedules, seed)
    opened: list[tuple[Handover, list[_Side]]] = []
    for one in proposals:
        with suppress(Exception):  # a runtime may refuse a model that another one takes
            opened.append((one, _opened(one.applied(recipe), schedules, seed)))
    rounds = [
        all_in_turn([own.run, *(sides[n].run for _, sides in opened)], _SECONDS, is_clear)
        for n, own in enumerate(ours)
    ]
    tvm_s, *theirs = (summed(times) for times in zip(*rounds, strict=True))
    alone = [times for (one, _), times in zip(opened, theirs, strict=True) if one.whole]
    rival_s = min(alone, key=_quiet, default=tvm_s)
    return [
        replace(
            one,
            seconds=times,
            tvm_s=tvm_s,
            rival_s=times if one.whole else rival_s,
            difference=max(
                relative_difference(got, expected)
                for own, side in zip(ours, sides, strict=True)
                for got, expected in zip(side.outputs, own.outputs, strict=True)
            ),
            foreign=tuple(side.entries for side in sides),
            shares={name: share for side in sides for name, share in side.shares.items()},
        )
        for (one, sides), times in zip(opened, theirs, strict=True)
    ]


def _opened(recipe: ModelRecipe, schedules: dict[str, str], seed: int) -> list[_Side]:
    """The model under each of its sets of shapes, warm."""
    found = []
    for variant in recipe.variants():
        model = tuned_model(variant, schedules)
        values = values_for(variant, model.inputs, seed)
        run = _run(model, values)
        outputs, shares = warmed(run), foreign_shares(model, values)
        entries = foreign_entries(model.foreign)
        found.append(_Side(run=run, outputs=outputs, entries=entries, shares=shares))
    return found


def _run(model: CompiledModel, values: list[Array]) -> Callable[[], Any]:
    opened = model.deployed()
    return lambda: opened.run(values)
