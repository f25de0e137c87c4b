"""A graph cut into a few pieces, each timed in ONNX Runtime: where is that faster than TVM's kernels?

Nothing is compiled for that: a piece takes in TVM what its kernels take inside the tuned model.
"""

import math
import tempfile
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from tuneloom.backends.resolving import resolve_target
from tuneloom.model import ModelRecipe
from tuneloom.tuners.tvm.importing.onnx.cleaning import CleanGraph
from tuneloom.tuners.tvm.importing.onnx.cleaning.assembling import part_of
from tuneloom.tuners.tvm.importing.onnx.cleaning.graph import captured, first_output
from tuneloom.tuners.tvm.importing.sources import import_model
from tuneloom.tuners.tvm.lowering.graph import LoweredModel, LowerOptions, lower
from tuneloom.tuners.tvm.lowering.tasks import calls_in_order, kernel_calls, kernel_key
from tuneloom.tuners.tvm.models.compiling.foreign import opened
from tuneloom.tuners.tvm.models.compiling.kernel_times import kernel_times
from tuneloom.tuners.tvm.models.compiling.running import Array, RunningModel
from tuneloom.tuners.tvm.models.making.lowered import lowered_model
from tuneloom.tuners.tvm.models.rivals.ordering import shared_out_in_order
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
    recipe: ModelRecipe, graph: CleanGraph, tuned: RunningModel, values: Sequence[Array], share: float = 1.0
) -> tuple[str, ...]:
    """The nodes of all pieces that ONNX Runtime runs clearly faster; none if that saves little.

    The whole model has to take less than this share of its time in TVM alone.
    """
    pieces = segments_of(graph)
    passed = {name for piece in pieces for name in (*piece.inputs, *piece.outputs)}
    if len(pieces) < 2 or any(graph.shape(name) is None for name in passed):
        return ()
    times = _times(recipe, graph, pieces, tuned, values)
    total, saved = sum(tvm_s for tvm_s, _ in times), 0.0
    found: list[str] = []
    for piece, (tvm_s, other_s) in zip(pieces, times, strict=True):
        if tvm_s > _CLEARLY * other_s and tvm_s - other_s > _WORTHWHILE * total:
            found += [first_output(node) for node in piece.nodes]
            saved += tvm_s - other_s
    # All of it is another proposal.
    return tuple(found) if len(found) < len(graph.nodes) and total - saved < share * total else ()


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
    pieces: Sequence[Segment],
    tuned: RunningModel,
    values: Sequence[Array],
) -> list[tuple[float, float]]:
    """Seconds of every piece in TVM and in ONNX Runtime, the least of several runs of both."""
    known = _known_values(graph, pieces, values, recipe.cores)
    contents = [
        part_of(graph, piece.nodes, piece.inputs, piece.outputs).SerializeToString() for piece in pieces
    ]
    sessions = [opened(content, recipe.cores) for content in contents]
    feeds = [{name: known[name] for name in piece.inputs} for piece in pieces]
    runs = [partial(session.run, None, feed) for session, feed in zip(sessions, feeds, strict=True)]
    for run in runs:
        warmed(run)
    kernels = kernel_times(tuned, values)
    other_s = all_in_turn(runs, _SECONDS)
    kernels = {name: min(seconds, kernels[name]) for name, seconds in kernel_times(tuned, values).items()}
    whole = lowered_model(recipe)
    operators = [[str(node.op_type) for node in piece.nodes] for piece in pieces]
    ours = shared_out_in_order(kernels, calls_in_order(whole.module), operators)
    if ours is None:
        ours = shared_out(kernels, whole, [_lowered(recipe, content) for content in contents])
    return [(tvm_s, min(theirs)) for tvm_s, theirs in zip(ours, other_s, strict=True)]


def _lowered(recipe: ModelRecipe, content: bytes) -> LoweredModel:
    with tempfile.TemporaryDirectory(prefix="tuneloom-") as folder:
        path = Path(folder) / "piece.onnx"
        path.write_bytes(content)
        target = resolve_target(recipe.target, cores=recipe.cores)
        return lower(import_model(str(path)), target, LowerOptions(layout=recipe.layout))


def shared_out(
    kernels: Mapping[str, float], whole: LoweredModel, pieces: Sequence[LoweredModel]
) -> list[float]:
    """The time of a model's kernels, by piece.

    Kernels across a cut are none of any piece: those that have others there share their time evenly.
    """
    calls = _calls(whole)
    seconds = {key: max(kernels.get(name, 0.0) for name in names) for key, names in _names(whole).items()}
    inside = [_calls(piece) for piece in pieces]
    taken = [sum(seconds.get(key, 0.0) * n for key, n in each.items()) for each in inside]
    matched = {key for each in inside for key in each}
    rest = sum(seconds[key] * n for key, n in calls.items() if key not in matched)
    cut = [any(key not in seconds for key in each) for each in inside]
    return [own + rest * at_cut / max(1, sum(cut)) for own, at_cut in zip(taken, cut, strict=True)]


def _calls(lowered: LoweredModel) -> Counter[str]:
    """How often a model calls its kernels, by the keys of their tasks."""
    found: Counter[str] = Counter()
    for name, count in kernel_calls(lowered.module).items():
        found[kernel_key(lowered.module[name], lowered.target)] += count
    return found


def _names(lowered: LoweredModel) -> dict[str, list[str]]:
    names: dict[str, list[str]] = {}
    for name in kernel_calls(lowered.module):
        names.setdefault(kernel_key(lowered.module[name], lowered.target), []).append(name)
    return names
