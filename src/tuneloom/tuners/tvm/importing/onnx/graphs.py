"""ONNX graphs handed to TVM: bound, cleaned, divided between runtimes, and converted."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from importlib.util import find_spec
from typing import Any

from tuneloom.compiler.fast_import import load_tvm
from tuneloom.errors import ModelError, reason_of
from tuneloom.tuners.tvm.importing.binding import Dims, bind
from tuneloom.tuners.tvm.importing.onnx.accepted import REPLACE, named
from tuneloom.tuners.tvm.importing.onnx.cleaning import CleanGraph, clean
from tuneloom.tuners.tvm.importing.onnx.cleaning.graph import first_output
from tuneloom.tuners.tvm.importing.onnx.converters import better_converters
from tuneloom.tuners.tvm.importing.onnx.crossing import open_shape, require_tensors
from tuneloom.tuners.tvm.importing.onnx.cutting import cut
from tuneloom.tuners.tvm.importing.onnx.foreign_types import types_by_running, undefined_values
from tuneloom.tuners.tvm.importing.onnx.node_by_node import NodeRefused, relax_module
from tuneloom.tuners.tvm.importing.relax import (
    Converted,
    Described,
    ForeignPart,
    describe_inputs,
    describe_outputs,
)

_OF_OTHER_DOMAINS = frozenset(("Attention",))
"""TVM's converters under these names are for operators of another domain than ONNX's own."""


Trial = Callable[[Any], None]
"""Compiles a Relax module as far as it may fail, and raises if it does."""


def import_onnx(
    model: Any,
    where: str,
    shapes: Mapping[str, tuple[int, ...]],
    *,
    only_tvm: bool = False,
    left: Sequence[str] = (),
    trial: Trial | None = None,
) -> Converted:
    """The model as a Relax module, with its inputs and outputs.

    Nodes that TVM can't take become parts for ONNX Runtime, unless `only_tvm`, or unless that is not
    installed: then the first of them is named in a ModelError. So do the nodes that are `left` there,
    each known by its first output, and with a `trial` those that TVM imports but fails at later.
    """
    load_tvm()
    bound = bind(declared_shapes(model), shapes, where)
    helped = not only_tvm and find_spec("onnxruntime") is not None
    graph = _cleaned(model, bound.shapes, where, helped)
    require_tensors(graph.inputs, graph.types, "input", where)
    require_tensors(graph.outputs, graph.types, "output", where)
    graph, parts = _divided(graph, where, _Cutting(only_tvm, helped, tuple(left), trial))
    module = converted(graph, where)
    return Converted(
        module=module,
        inputs=describe_inputs(module, graph.inputs, where),
        outputs=_outputs(module, model, graph, where),
        notes=(*bound.notes, *graph.notes, *(_note(part) for part in parts.values() if not left)),
        foreign=tuple(parts.values()),
    )


def cleaned(model: Any, where: str, shapes: Mapping[str, tuple[int, ...]]) -> CleanGraph:
    """The graph under these shapes, as `import_onnx` cuts it."""
    load_tvm()
    return _cleaned(model, bind(declared_shapes(model), shapes, where).shapes, where, True)


@dataclass(frozen=True, slots=True)
class _Cutting:
    """How a graph is divided between TVM and ONNX Runtime."""

    only_tvm: bool
    helped: bool
    left: tuple[str, ...]
    trial: Trial | None


def _divided(graph: CleanGraph, where: str, how: _Cutting) -> tuple[CleanGraph, dict[str, ForeignPart]]:
    refused = refusals(graph, where)
    if how.trial is not None:
        refused += tried(graph, refused, how.trial, where)
    if refused and not how.helped:
        raise ModelError(f"{where}: {_refusal(refused[0], how.only_tvm)}")
    foreign = [*(first_output(one.node) for one in refused), *how.left]
    try:
        return cut(graph, foreign) if foreign else (graph, {})
    except ModelError as error:
        raise ModelError(f"{where}: {error}") from error


def _outputs(module: Any, model: Any, graph: CleanGraph, where: str) -> Described:
    """What main returns; sizes that Relax does not know may be in the graph."""
    names = [value.name for value in model.graph.output]
    found = describe_outputs(module, names, where, may_be_open=True)
    return [
        (name, open_shape(graph.types.get(inner)) or shape if -1 in shape else shape, kind)
        for (name, shape, kind), inner in zip(found, graph.outputs, strict=True)
    ]


def _cleaned(model: Any, shapes: Mapping[str, tuple[int, ...]], where: str, helped: bool) -> CleanGraph:
    """The clean graph; with ONNX Runtime's help, types of operators that only it knows are known too."""
    graph = clean(model, shapes, where, primitive_operators())
    unknown = undefined_values(graph)
    if not unknown or not helped:
        return graph
    return clean(model, shapes, where, primitive_operators(), types_by_running(graph, unknown))


def _note(part: ForeignPart) -> str:
    return f"ONNX Runtime runs {', '.join(part.operators)}: TVM can't take them"


def declared_shapes(model: Any) -> dict[str, Dims | None]:
    """What the file says about its inputs; sizes of zero or less stand for open dimensions."""
    given = {tensor.name for tensor in model.graph.initializer}
    return {value.name: _dims(value.type) for value in model.graph.input if value.name not in given}


def _dims(kind: Any) -> Dims | None:
    if not kind.HasField("tensor_type") or not kind.tensor_type.HasField("shape"):
        return None
    return tuple(
        int(dim.dim_value) if dim.dim_value > 0 else str(dim.dim_param or "?")
        for dim in kind.tensor_type.shape.dim
    )


def refusals(graph: CleanGraph, where: str) -> list[NodeRefused]:
    """All nodes that TVM can't take; values they would make are stood in for by inputs."""
    refused: list[NodeRefused] = []
    _imported(graph, refused, where)
    return refused


def tried(graph: CleanGraph, refused: Sequence[NodeRefused], trial: Trial, where: str) -> list[NodeRefused]:
    """Further nodes that can't be taken: those that fail when they are compiled alone."""
    known = {first_output(one.node) for one in refused}
    found: list[NodeRefused] = []
    for node in graph.nodes:
        if first_output(node) not in known:
            try:
                trial(converted(_alone(graph, node), where))
            except Exception as error:
                found.append(NodeRefused(node, reason_of(error)))
    return found


def _alone(graph: CleanGraph, node: Any) -> CleanGraph:
    """A graph of one node."""
    read = dict.fromkeys(name for name in node.input if name and name not in graph.constants)
    return replace(graph, nodes=[node], inputs=list(read), outputs=[name for name in node.output if name])


def converted(graph: CleanGraph, where: str) -> Any:
    """The Relax module of a clean graph without refused nodes; its parts become calls."""
    return _imported(graph, None, where)


def _imported(graph: CleanGraph, refused: list[NodeRefused] | None, where: str) -> Any:
    """Import; nodes that can't be are collected in `refused`, or named in a ModelError if that is None."""
    try:
        return relax_module(graph, refused)
    except NodeRefused as reason:
        raise ModelError(f"{where}: {_refusal(reason, True)}") from reason
    except Exception as error:
        raise ModelError(f"{where}: TVM can't import this graph: {reason_of(error)}") from error


def primitive_operators() -> frozenset[str]:
    """Operators that have a converter; others are replaced by what ONNX defines them by."""
    from tvm.relax.frontend.onnx import onnx_frontend

    with better_converters():
        return frozenset(onnx_frontend._get_convert_map()) - _OF_OTHER_DOMAINS


def _refusal(refused: NodeRefused, only_tvm: bool) -> str:
    remedy, node = REPLACE, named(refused.node, refused.node.name.partition(":")[2])
    if not only_tvm:
        remedy += ", or let ONNX Runtime run it: pip install 'tuneloom[onnxruntime]'"
    if "not implemented" in refused.reason:
        return f"TVM does not import operator {node}; {remedy}"
    return f"TVM can't import operator {node}: {refused.reason}; {remedy}"
