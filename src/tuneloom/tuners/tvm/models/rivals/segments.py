"""A graph cut into a few pieces, each timed in both runtimes: where does TVM lose?"""

import math
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import Any

from tuneloom.backends.resolving import resolve_target
from tuneloom.model import ModelRecipe
from tuneloom.tuners.tvm.importing.onnx.cleaning import CleanGraph
from tuneloom.tuners.tvm.importing.onnx.cleaning.assembling import part_of
from tuneloom.tuners.tvm.importing.onnx.cleaning.graph import captured, first_output
from tuneloom.tuners.tvm.importing.sources import import_model
from tuneloom.tuners.tvm.lowering.graph import LowerOptions, lower
from tuneloom.tuners.tvm.models.compiling.building import build_model
from tuneloom.tuners.tvm.models.compiling.foreign import opened
from tuneloom.tuners.tvm.models.compiling.running import Array
from tuneloom.tuners.tvm.models.rivals.turns import all_in_turn, warmed

MOST = 8
_SECONDS = 0.3
_CLEARLY = 1.15
"""How much slower TVM has to be for a piece to be worth a call of another runtime."""
_WORTHWHILE = 0.02
"""Which part of the model's time has to be saved."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Segment:
    """Some nodes of a graph that follow each other, what they read and what others read of them."""

    nodes: list[Any] = field(repr=False)
    inputs: list[str]
    outputs: list[str]


def segments_of(graph: CleanGraph, most: int = MOST) -> list[Segment]:
    """The graph in at most so many pieces of about the same work, cut where little goes across."""
    ends = _ends(graph, most)
    starts = [0, *ends[:-1]]
    return [_segment(graph, start, end) for start, end in zip(starts, ends, strict=True)]


def _ends(graph: CleanGraph, most: int) -> list[int]:
    work = [_work(graph, node) for node in graph.nodes]
    total, across = sum(work), _across(graph)
    done, middles = 0.0, []
    for effort in work:
        done += effort
        middles.append(done / total)
    ends: list[int] = []
    for number in range(1, most):
        low, high = ((number - 0.5) / most, (number + 0.5) / most)
        near = [place for place, share in enumerate(middles) if low <= share < high]
        if near:
            ends.append(min(near, key=lambda place: across[place]) + 1)
    return sorted({*ends, len(graph.nodes)})


def _work(graph: CleanGraph, node: Any) -> float:
    """Roughly how many operations a node takes: products count all that they add, others once a value."""
    made = sum(math.prod(graph.shape(name) or (1,)) for name in node.output if name)
    if node.op_type in ("Conv", "ConvTranspose"):
        return float(made * math.prod((graph.shape(node.input[1]) or (1, 1))[1:]))
    if node.op_type in ("MatMul", "Gemm"):
        return float(made * (graph.shape(node.input[0]) or (1,))[-1])
    return float(8 * made)


def _across(graph: CleanGraph) -> list[float]:
    """How many values are alive after each node: made before, read later."""
    last = {name: place for place, node in enumerate(graph.nodes) for name in captured(node)}
    last |= {name: len(graph.nodes) for name in graph.outputs}
    alive: dict[str, float] = {}
    found = []
    for place, node in enumerate(graph.nodes):
        alive |= {name: float(math.prod(graph.shape(name) or (1,))) for name in node.output if name}
        alive = {name: size for name, size in alive.items() if last.get(name, -1) > place}
        found.append(sum(alive.values()))
    return found


def _segment(graph: CleanGraph, start: int, end: int) -> Segment:
    nodes = graph.nodes[start:end]
    made = {name for node in nodes for name in node.output if name}
    later = {name for node in graph.nodes[end:] for name in captured(node)} | set(graph.outputs)
    read = dict.fromkeys(name for node in nodes for name in sorted(captured(node)))
    inputs = [name for name in read if name not in made and name not in graph.constants]
    outputs = [name for node in nodes for name in node.output if name in later]
    return Segment(nodes=nodes, inputs=[name for name in inputs if name in graph.types], outputs=outputs)


def slower_nodes(
    recipe: ModelRecipe, graph: CleanGraph, schedules: dict[str, str], values: Sequence[Array]
) -> tuple[str, ...]:
    """The nodes of all pieces that ONNX Runtime runs clearly faster; none if that saves little."""
    pieces = segments_of(graph)
    passed = {name for piece in pieces for name in (*piece.inputs, *piece.outputs)}
    if len(pieces) < 2 or any(graph.shape(name) is None for name in passed):
        return ()
    known = _known_values(graph, pieces, values, recipe.cores)
    times = [_times(recipe, graph, piece, schedules, known) for piece in pieces]
    total = sum(tvm_s for tvm_s, _ in times)
    found: list[str] = []
    for piece, (tvm_s, other_s) in zip(pieces, times, strict=True):
        if tvm_s > _CLEARLY * other_s and tvm_s - other_s > _WORTHWHILE * total:
            found += [first_output(node) for node in piece.nodes]
    return tuple(found) if len(found) < len(graph.nodes) else ()  # all of it is another proposal


def _known_values(
    graph: CleanGraph, pieces: Sequence[Segment], values: Sequence[Array], threads: int
) -> dict[str, Array]:
    """What goes from piece to piece for these inputs."""
    given = dict(zip(graph.inputs, values, strict=True))
    wanted = sorted({name for piece in pieces for name in piece.inputs} - set(given))
    session = opened(part_of(graph, graph.nodes, graph.inputs, wanted).SerializeToString(), threads)
    return given | dict(zip(wanted, session.run(wanted, given), strict=True))


def _times(
    recipe: ModelRecipe,
    graph: CleanGraph,
    piece: Segment,
    schedules: dict[str, str],
    known: dict[str, Array],
) -> tuple[float, float]:
    """Seconds of a piece in TVM and in ONNX Runtime, taken in turn; TVM's are none where it can't take it."""
    content = part_of(graph, piece.nodes, piece.inputs, piece.outputs).SerializeToString()
    session = opened(content, recipe.cores)
    feeds = {name: known[name] for name in piece.inputs}
    with tempfile.TemporaryDirectory(prefix="tuneloom-") as folder:
        path = Path(folder) / "piece.onnx"
        path.write_bytes(content)
        target = resolve_target(recipe.target, cores=recipe.cores)
        lowered = lower(import_model(str(path)), target, LowerOptions(layout=recipe.layout))
    running = build_model(lowered, schedules, guess=True).open_here()
    ordered = [known[info.name] for info in lowered.inputs]
    runs = [lambda: running.run(ordered), lambda: session.run(None, feeds)]
    for run in runs:
        warmed(run)
    tvm_s, other_s = all_in_turn(runs, _SECONDS)
    return median(tvm_s), median(other_s)
