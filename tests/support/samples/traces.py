"""Traces small enough to read, in the form that TVM writes them."""

import json
from collections.abc import Sequence
from typing import Any

from tuneloom.model import KnobDomain, SketchSpace, TaskSpace, TileDomain
from tuneloom.transfer import Donor

_BOUND = 64


def tiled_trace(tiles: Sequence[tuple[int, int]], *, inlined: int = 0, reverse: bool = False) -> str:
    """Every loop split in two; `inlined` blocks behind the anchor, loops in order or reversed."""
    instructions: list[list[Any]] = [["GetSBlock", [], ["conv2d", "main"], ["b0"]]]
    number = 1
    for place in range(inlined):
        instructions.append(["GetSBlock", [], [f"after{place}", "main"], [f"b{number}"]])
        instructions.append(["ComputeInline", [f"b{number}"], [], []])
        number += 1
    loops = [f"l{number + place}" for place in range(len(tiles))]
    number += len(tiles)
    instructions.append(["GetLoops", ["b0"], [], loops])
    decisions, outer = [], []
    for loop, tile in zip(loops, tiles, strict=True):
        decisions.append([len(instructions), list(tile)])
        factors, parts = [f"v{number}", f"v{number + 1}"], [f"l{number + 2}", f"l{number + 3}"]
        instructions.append(["SamplePerfectTile", [loop], [2, _BOUND], factors])
        instructions.append(["Split", [loop, *factors], [True, False], parts])
        outer.append(parts[0])
        number += 4
    instructions.append(["Reorder", outer[::-1] if reverse else outer, [], []])
    return json.dumps([instructions, decisions])


def tiled_space(key: str, *extents: int, inlined: int = 0) -> TaskSpace:
    """A space of two sketches that differ in the order of loops."""
    knobs: tuple[KnobDomain, ...] = tuple(
        TileDomain(extent=extent, parts=2, innermost_max=_BOUND) for extent in extents
    )
    whole = [(extent, 1) for extent in extents]
    traces = [tiled_trace(whole, inlined=inlined, reverse=reverse) for reverse in (False, True)]
    return TaskSpace(task_key=key, sketches=tuple(SketchSpace(trace=t, knobs=knobs) for t in traces))


def tiled_donor(
    record: int, key: str, seconds: float, tiles: Sequence[tuple[int, int]], **form: Any
) -> Donor:
    """A record of a kernel with such loops."""
    return Donor(
        record=record,
        task_key=key,
        kernel_class="conv2d",
        gflop=1.0,
        seconds=seconds,
        device_key="cpu",
        origin=f"transfer:{record}",
        trace=tiled_trace(tiles, **form),
    )
