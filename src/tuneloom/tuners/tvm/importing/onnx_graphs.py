"""ONNX graphs handed to TVM: bound, cleaned, converted node by node, each result checked for its type."""

import hashlib
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any

from tuneloom.errors import ModelError
from tuneloom.tuners.tvm.fast_import import load_tvm
from tuneloom.tuners.tvm.importing.binding import Dims, bind
from tuneloom.tuners.tvm.importing.cleaning import CleanGraph, clean
from tuneloom.tuners.tvm.importing.cleaning.assembling import assembled
from tuneloom.tuners.tvm.importing.converters import better_converters
from tuneloom.tuners.tvm.importing.cutting import ALL, DOMAIN, cut, first_output, foreign_call, left_whole
from tuneloom.tuners.tvm.importing.foreign_types import types_by_running, undefined_values
from tuneloom.tuners.tvm.importing.half import as_declared, as_single, has_half
from tuneloom.tuners.tvm.importing.relax import (
    Converted,
    ForeignPart,
    describe_inputs,
    describe_outputs,
    one_line,
)

_OF_OTHER_DOMAINS = frozenset(("Attention",))
"""TVM's converters under these names are for operators of another domain than ONNX's own."""


class NodeRefused(Exception):  # noqa: N818 - the name is the message
    """TVM can't take one node; `node` says which."""

    def __init__(self, node: Any, reason: str) -> None:
        super().__init__(reason)
        self.node = node
        self.reason = reason


def import_onnx(
    model: Any,
    where: str,
    shapes: Mapping[str, tuple[int, ...]],
    *,
    only_tvm: bool = False,
    left: Sequence[str] = (),
) -> Converted:
    """The model as a Relax module, with its inputs and outputs.

    Nodes that TVM can't take become parts for ONNX Runtime, unless `only_tvm`, or unless that is not
    installed: then the first of them is named in a ModelError. So do the nodes that are `left` there,
    each known by its first output, or ALL.
    """
    load_tvm()
    bound = bind(declared_shapes(model), shapes, where)
    helped = not only_tvm and find_spec("onnxruntime") is not None
    graph = _cleaned(model, bound.shapes, where, helped)
    graph, parts = _divided(graph, model, where, _Cutting(bound.shapes, only_tvm, helped, tuple(left)))
    module = converted(graph, where)
    return Converted(
        module=module,
        inputs=describe_inputs(module, graph.inputs, where),
        outputs=describe_outputs(module, [value.name for value in model.graph.output], where),
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

    shapes: Mapping[str, tuple[int, ...]]
    only_tvm: bool
    helped: bool
    left: tuple[str, ...]


def _divided(
    graph: CleanGraph, model: Any, where: str, how: _Cutting
) -> tuple[CleanGraph, dict[str, ForeignPart]]:
    digest = _digest(model, how.shapes)
    if how.left == ALL:
        return left_whole(graph, model, digest)
    refused = refusals(graph, where)
    if refused and not how.helped:
        raise ModelError(f"{where}: {_refusal(refused[0], how.only_tvm)}")
    foreign = [*(first_output(one.node) for one in refused), *how.left]
    return cut(graph, foreign, digest) if foreign else (graph, {})


def _cleaned(model: Any, shapes: Mapping[str, tuple[int, ...]], where: str, helped: bool) -> CleanGraph:
    """The clean graph; with ONNX Runtime's help, types of operators that only it knows are known too."""
    graph = clean(model, shapes, where, primitive_operators())
    unknown = undefined_values(graph)
    if not unknown or not helped:
        return graph
    return clean(model, shapes, where, primitive_operators(), types_by_running(graph, unknown))


def _note(part: ForeignPart) -> str:
    return f"ONNX Runtime runs {', '.join(part.operators)}: TVM can't take them"


def _digest(model: Any, shapes: Mapping[str, tuple[int, ...]]) -> str:
    """A name for the model under these shapes: parts of several may be in one process."""
    sha = hashlib.sha256(model.SerializeToString())
    sha.update(repr(sorted(shapes.items())).encode())
    return sha.hexdigest()


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


def converted(graph: CleanGraph, where: str) -> Any:
    """The Relax module of a clean graph without refused nodes; its parts become calls."""
    return _imported(graph, None, where)


def _imported(graph: CleanGraph, refused: list[NodeRefused] | None, where: str) -> Any:
    """Import; nodes that can't be are collected in `refused`, or raised if that is None."""
    from tvm.relax.frontend.onnx.onnx_frontend import ONNXGraphImporter

    model = assembled(graph)
    nodes = {}
    for number, node in enumerate(model.graph.node):
        node.name = f"{number}:{node.name}"  # some files name no node, some two alike
        nodes[node.name] = node

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
                if refused is None or not _may_be_foreign(node, graph):
                    raise
                refused.append(reason)
                return foreign_call(node, [one for one in inputs if one is not None], graph, self.bb, "none")

        def _checked(self, node: Any, inputs: Any, attrs: Any, opset: int) -> Any:
            try:
                result = super()._convert_operator(_key(node), inputs, attrs, opset)
            except Exception as error:
                if not has_half(inputs):
                    raise NodeRefused(node, one_line(error)) from error
                result = self._in_single_precision(node, inputs, attrs, opset)
            _check_types(node, result, graph)
            return result

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


def _may_be_foreign(node: Any, graph: CleanGraph) -> bool:
    """Whether another runtime can run a node for us: what it makes must be tensors of known shapes."""
    return all(graph.shape(name) is not None for name in node.output if name)


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
    node = refused.node
    remedy = "replace it in the model or export with other operators"
    if not only_tvm:
        remedy += ", or let ONNX Runtime run it: pip install 'tuneloom[onnxruntime]'"
    kind = f"{node.domain}.{node.op_type}" if node.domain else node.op_type
    name = node.name.partition(":")[2]
    place = name or f"with output {node.output[0]!r}"
    if "not implemented" in refused.reason:
        return f"TVM does not import operator {kind} (node {place}); {remedy}"
    return f"TVM can't import operator {kind} (node {place}): {refused.reason}; {remedy}"
