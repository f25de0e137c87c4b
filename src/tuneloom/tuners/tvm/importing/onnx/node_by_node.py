"""Nodes of a clean ONNX graph handed to TVM's importer one by one, each result checked for its type."""

import warnings
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Any

from tuneloom.compiler.lazy import onnx
from tuneloom.errors import reason_of
from tuneloom.tuners.tvm.importing.onnx.cleaning import CleanGraph
from tuneloom.tuners.tvm.importing.onnx.cleaning.assembling import assembled
from tuneloom.tuners.tvm.importing.onnx.cleaning.graph import captured, first_output
from tuneloom.tuners.tvm.importing.onnx.cleaning.masked import is_masked_lstm
from tuneloom.tuners.tvm.importing.onnx.converters import better_converters
from tuneloom.tuners.tvm.importing.onnx.converters.recurrent import masked_lstm
from tuneloom.tuners.tvm.importing.onnx.converters.rounded import (
    MOVING,
    in_whole_numbers,
    moved,
    quantised_again,
)
from tuneloom.tuners.tvm.importing.onnx.crossing import is_fixed
from tuneloom.tuners.tvm.importing.onnx.cutting import DOMAIN, foreign_call
from tuneloom.tuners.tvm.importing.onnx.half import as_declared, as_single, has_half, is_rounded_once

_MAY_BE_OPEN = frozenset(("NonMaxSuppression",))
"""Operators that TVM computes although the size of their result depends on data, if nothing else reads it."""


class NodeRefused(Exception):  # noqa: N818 - the name is the message
    """TVM can't take one node; `node` says which."""

    def __init__(self, node: Any, reason: str) -> None:
        super().__init__(reason)
        self.node = node
        self.reason = reason


def relax_module(graph: CleanGraph, refused: list[NodeRefused] | None) -> Any:
    """The graph in Relax; what can't be converted is collected in `refused`, or raised if that is None."""
    model = assembled(graph)
    importer = _importer(graph, _named(model), refused)
    version = max((one.version for one in graph.opsets if one.domain in ("", "ai.onnx")), default=1)
    with warnings.catch_warnings(), better_converters():
        warnings.simplefilter("ignore")
        return importer({}, "float32").from_onnx(model.graph, version)


def _importer(graph: CleanGraph, nodes: Mapping[str, Any], refused: list[NodeRefused] | None) -> Any:
    """TVM's importer, which says at which node it failed, and goes on if somebody collects them."""
    from tvm.relax.frontend.onnx.onnx_frontend import ONNXGraphImporter

    read = {name for node in graph.nodes for name in captured(node)}

    class Importer(ONNXGraphImporter):  # type: ignore[misc]
        """Asks for every node when its turn comes."""

        def _check_for_unsupported_ops(self, graph: Any) -> None:
            """Nothing is refused before."""

        def _convert_operator(self, op_name: str, inputs: Any, attrs: Any, opset: int) -> Any:
            node, convert = nodes[attrs["tvm_custom"]["name"]], super()._convert_operator
            if node.domain == DOMAIN:
                return foreign_call(node, inputs, graph, self.bb, node.name.partition(":")[2])
            step = _Step(
                node, graph, read, self.bb, attrs, lambda given: convert(_key(node), given, attrs, opset)
            )
            try:
                return step.checked(inputs)
            except NodeRefused as reason:
                if refused is None:
                    raise
                refused.append(reason)
                return foreign_call(node, [one for one in inputs if one is not None], graph, self.bb, "none")

        def _parse_attr(self, attr_proto: Any) -> Any:
            """TVM's own stops at empty lists."""
            return super()._parse_attr([one for one in attr_proto if not _is_empty(one)])

    return Importer


@dataclass(frozen=True, slots=True)
class _Step:
    """One node on its way into Relax; `convert` is TVM's own way for it, and `read` what any node reads."""

    node: Any
    graph: CleanGraph
    read: Collection[str]
    bb: Any
    attrs: Any
    convert: Callable[[Any], Any]

    def checked(self, inputs: Any) -> Any:
        """The node's result; raises NodeRefused if there is none, or one that can't be right."""
        if not all(is_fixed(value) for value in inputs):
            raise NodeRefused(self.node, "the shape of what it reads depends on data")
        result = self._as_it_is(inputs)
        if result is None:
            result = self._in_single_precision(inputs)
        _check_number(self.node, result)
        _check_types(self.node, result, self.graph)
        if not is_fixed(result) and not self._may_be_open():
            raise NodeRefused(self.node, "the shape of its output depends on data")
        return result

    def _may_be_open(self) -> bool:
        return self.node.op_type in _MAY_BE_OPEN and first_output(self.node) not in self.read

    def _as_it_is(self, inputs: Any) -> Any | None:
        """The node in the types it has; None if it has to be computed in single precision."""
        try:
            if is_rounded_once(self.node, inputs):
                return None
            if is_masked_lstm(self.node):
                return masked_lstm(self.bb, self.node, inputs, self.graph.constants)
            result = self._on_whole_numbers(inputs)
            return self.convert(inputs) if result is None else result
        except Exception as error:
            if not has_half(inputs):
                raise NodeRefused(self.node, reason_of(error)) from error
            return None

    def _on_whole_numbers(self, inputs: Any) -> Any | None:
        """A node between dequantised values, computed before they are; None for any other."""
        if self.node.op_type == "QuantizeLinear":
            return quantised_again(self.bb, inputs)
        if self.node.op_type in MOVING and len(self.node.output) == 1:
            return moved(self.bb, inputs, self.convert)
        return in_whole_numbers(self.bb, self.node, inputs, self.attrs, self.graph.constants)

    def _in_single_precision(self, inputs: Any) -> Any:
        """A node that TVM can't take in half precision."""
        try:
            single = [as_single(self.bb, value) for value in inputs]
            result = self.bb.normalize(self.convert(type(inputs)(single)))
            return as_declared(self.bb, self.node, result, self.graph.types)
        except Exception as error:
            raise NodeRefused(self.node, reason_of(error)) from error


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


def _key(node: Any) -> str:
    """Under which name converters know an operator."""
    return str(node.op_type if node.domain in ("", "ai.onnx") else f"{node.domain}.{node.op_type}")


def _check_number(node: Any, result: Any) -> None:
    """Raise NodeRefused if TVM makes fewer outputs than the node has."""
    kind: Any = getattr(result, "ty", None)
    made = len(kind.fields) if hasattr(kind, "fields") else 1
    if kind is not None and made < len([name for name in node.output if name]):
        raise NodeRefused(node, f"TVM makes {made} of its {len(node.output)} outputs")


def _check_types(node: Any, result: Any, graph: CleanGraph) -> None:
    """Raise NodeRefused if TVM derived another type than ONNX did: one of them is wrong, so don't go on."""
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
        wanted = str(onnx.helper.tensor_dtype_to_np_dtype(declared.tensor_type.elem_type))
        if found != shape or str(field.dtype) != wanted:
            raise NodeRefused(node, f"its output is {wanted} {shape}, but TVM makes {field.dtype} {found}")
