"""ONNX graphs handed to TVM: bound, cleaned, converted node by node, each result checked for its type."""

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any

from tuneloom.errors import ModelError
from tuneloom.tuners.tvm.fast_import import load_tvm
from tuneloom.tuners.tvm.importing.accepted import REPLACE, named
from tuneloom.tuners.tvm.importing.binding import Dims, bind
from tuneloom.tuners.tvm.importing.cleaning import CleanGraph, clean
from tuneloom.tuners.tvm.importing.cleaning.assembling import assembled
from tuneloom.tuners.tvm.importing.cleaning.graph import captured
from tuneloom.tuners.tvm.importing.converters import better_converters
from tuneloom.tuners.tvm.importing.converters.rounded import MOVING, in_whole_numbers, moved, quantised_again
from tuneloom.tuners.tvm.importing.crossing import is_fixed, open_shape, require_tensors
from tuneloom.tuners.tvm.importing.cutting import ALL, DOMAIN, cut, first_output, foreign_call, left_whole
from tuneloom.tuners.tvm.importing.foreign_types import types_by_running, undefined_values
from tuneloom.tuners.tvm.importing.half import as_declared, as_single, has_half, is_rounded_once
from tuneloom.tuners.tvm.importing.relax import (
    Converted,
    Described,
    ForeignPart,
    describe_inputs,
    describe_outputs,
    one_line,
)

_OF_OTHER_DOMAINS = frozenset(("Attention",))
"""TVM's converters under these names are for operators of another domain than ONNX's own."""

_MAY_BE_OPEN = frozenset(("NonMaxSuppression",))
"""Operators that TVM computes although the size of their result depends on data, if nothing else reads it."""


class NodeRefused(Exception):  # noqa: N818 - the name is the message
    """TVM can't take one node; `node` says which."""

    def __init__(self, node: Any, reason: str) -> None:
        super().__init__(reason)
        self.node = node
        self.reason = reason


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
    each known by its first output, or ALL, and with a `trial` those that TVM imports but fails at later.
    """
    load_tvm()
    bound = bind(declared_shapes(model), shapes, where)
    helped = not only_tvm and find_spec("onnxruntime") is not None
    graph = _cleaned(model, bound.shapes, where, helped)
    require_tensors(graph.inputs, graph.types, "input", where)
    require_tensors(graph.outputs, graph.types, "output", where)
    graph, parts = _divided(graph, model, where, _Cutting(only_tvm, helped, tuple(left), trial))
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


def _divided(
    graph: CleanGraph, model: Any, where: str, how: _Cutting
) -> tuple[CleanGraph, dict[str, ForeignPart]]:
    if how.left == ALL:
        return left_whole(graph, model)
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
                found.append(NodeRefused(node, one_line(error)))
    return found


def _alone(graph: CleanGraph, node: Any) -> CleanGraph:
    """A graph of one node."""
    read = dict.fromkeys(name for name in node.input if name and name not in graph.constants)
    return CleanGraph(
        nodes=[node],
        types=graph.types,
        constants=graph.constants,
        inputs=list(read),
        outputs=[name for name in node.output if name],
        opsets=graph.opsets,
    )


def converted(graph: CleanGraph, where: str) -> Any:
    """The Relax module of a clean graph without refused nodes; its parts become calls."""
    return _imported(graph, None, where)


def _imported(graph: CleanGraph, refused: list[NodeRefused] | None, where: str) -> Any:
    """Import; nodes that can't be are collected in `refused`, or raised if that is None."""
    from tvm.relax.frontend.onnx.onnx_frontend import ONNXGraphImporter

    model = assembled(graph)
    nodes = _named(model)
    read = {name for node in graph.nodes for name in captured(node)}

    class Importer(ONNXGraphImporter):  # type: ignore[misc]
        """TVM's importer, which says at which node it failed."""

        def _check_for_unsupported_ops(self, graph: Any) -> None:
            """Each node is asked when its turn comes."""

        def _convert_operator(self, op_name: str, inputs: Any, attrs: Any, opset: int) -> Any:
            node = nodes[attrs["tvm_custom"]["name"]]
            if node.domain == DOMAIN:
                return foreign_call(node, inputs, graph, self.bb, node.name.partition(":")[2])
            try:
                return self._checked(node, inputs, attrs, opset)
            except NodeRefused as reason:
                if refused is None:
                    raise
                refused.append(reason)
                return foreign_call(node, [one for one in inputs if one is not None], graph, self.bb, "none")

        def _parse_attr(self, attr_proto: Any) -> Any:
            """TVM's own stops at empty lists."""
            return super()._parse_attr([one for one in attr_proto if not _is_empty(one)])

        def _checked(self, node: Any, inputs: Any, attrs: Any, opset: int) -> Any:
            if not all(is_fixed(value) for value in inputs):
                raise NodeRefused(node, "the shape of what it reads depends on data")
            try:
                once = is_rounded_once(node, inputs)
                result = None if once else self._as_it_is(node, inputs, attrs, opset)
            except Exception as error:
                if not has_half(inputs):
                    raise NodeRefused(node, one_line(error)) from error
                result = None
            if result is None:
                result = self._in_single_precision(node, inputs, attrs, opset)
            _check_types(node, result, graph)
            if not is_fixed(result) and (node.op_type not in _MAY_BE_OPEN or first_output(node) in read):
                raise NodeRefused(node, "the shape of its output depends on data")
            return result

        def _as_it_is(self, node: Any, inputs: Any, attrs: Any, opset: int) -> Any:
            """The node in the types it has."""
            result = self._on_whole_numbers(node, inputs, attrs, opset)
            return super()._convert_operator(_key(node), inputs, attrs, opset) if result is None else result

        def _on_whole_numbers(self, node: Any, inputs: Any, attrs: Any, opset: int) -> Any | None:
            """A node between dequantised values, computed before they are; None for any other."""
            if node.op_type == "QuantizeLinear":
                return quantised_again(self.bb, inputs)
            if node.op_type in MOVING and len(node.output) == 1:
                convert = super()._convert_operator
                return moved(self.bb, inputs, lambda whole: convert(_key(node), whole, attrs, opset))
            return in_whole_numbers(self.bb, node, inputs, attrs, graph.constants)

        def _in_single_precision(self, node: Any, inputs: Any, attrs: Any, opset: int) -> Any:
            """A node that TVM can't take in half precision, computed in single precision."""
            try:
                single = [as_single(self.bb, value) for value in inputs]
                result = super()._convert_operator(_key(node), type(inputs)(single), attrs, opset)
                return as_declared(self.bb, node, self.bb.normalize(result), graph.types)
            except Exception as error:
                raise NodeRefused(node, one_line(error)) from error

    version = max((one.version for one in graph.opsets if one.domain in ("", "ai.onnx")), default=1)
    try:
        with warnings.catch_warnings(), better_converters():
            warnings.simplefilter("ignore")
            return Importer({}, "float32").from_onnx(model.graph, version)
    except NodeRefused as reason:
        raise ModelError(f"{where}: {_refusal(reason, True)}") from reason
    except Exception as error:
        raise ModelError(f"{where}: TVM can't import this graph: {one_line(error)}") from error


def _named(model: Any) -> dict[str, Any]:
    """The nodes under names of their own: some files name no node, some two alike.

    TVM must not look into branches and bodies that remain: they are not for it.
    """
    nodes = {}
    for number, node in enumerate(model.graph.node):
        node.name = f"{number}:{node.name}"
        nodes[node.name] = type(node).FromString(node.SerializeToString())
        if any(one.HasField("g") or one.graphs for one in node.attribute):
            node.op_type = f"{node.op_type} with graphs"
            del node.attribute[:]
    return nodes


def _is_empty(attribute: Any) -> bool:
    lists = ("ints", "floats", "strings", "tensors", "graphs", "type_protos", "sparse_tensors")
    single = any(attribute.HasField(name) for name in ("f", "i", "s", "t", "g", "tp", "sparse_tensor"))
    return not single and not any(len(getattr(attribute, name)) for name in lists)


def primitive_operators() -> frozenset[str]:
    """Operators that have a converter; others are replaced by what ONNX defines them by."""
    from tvm.relax.frontend.onnx import onnx_frontend

    with better_converters():
        return frozenset(onnx_frontend._get_convert_map()) - _OF_OTHER_DOMAINS


def _key(node: Any) -> str:
    """Under which name converters know an operator."""
    return str(node.op_type if node.domain in ("", "ai.onnx") else f"{node.domain}.{node.op_type}")


def _check_types(node: Any, result: Any, graph: CleanGraph) -> None:
    """Raise NodeRefused if TVM derived another type than ONNX did: one of them is wrong, so don't go on."""
    from onnx import helper

    kind: Any = getattr(result, "ty", None)
    fields = list(kind.fields) if hasattr(kind, "fields") else [kind]
    for name, field in zip(node.output, fields, strict=False):
        if not name:
            continue
        shape, declared = graph.shape(name), graph.types[name]
        extents = getattr(getattr(field, "shape", None), "values", None)
        if shape is None or extents is None:
            continue
        found = tuple(int(e.value) if hasattr(e, "value") else -1 for e in extents)
        wanted = str(helper.tensor_dtype_to_np_dtype(declared.tensor_type.elem_type))
        if found != shape or str(field.dtype) != wanted:
            raise NodeRefused(node, f"its output is {wanted} {shape}, but TVM makes {field.dtype} {found}")


def _refusal(refused: NodeRefused, only_tvm: bool) -> str:
    remedy, node = REPLACE, named(refused.node, refused.node.name.partition(":")[2])
    if not only_tvm:
        remedy += ", or let ONNX Runtime run it: pip install 'tuneloom[onnxruntime]'"
    if "not implemented" in refused.reason:
        return f"TVM does not import operator {node}; {remedy}"
    return f"TVM can't import operator {node}: {refused.reason}; {remedy}"
