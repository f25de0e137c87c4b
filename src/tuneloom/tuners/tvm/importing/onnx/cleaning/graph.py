"""One walk over a graph: types are derived, what is known is computed, the rest is kept."""

import re
from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from tuneloom.compiler.lazy import onnx
from tuneloom.errors import ModelError, reason_of
from tuneloom.tuners.tvm.importing.onnx.cleaning.constants import (
    Constants,
    compute,
    may_compute,
    static_shape,
)
from tuneloom.tuners.tvm.importing.onnx.cleaning.scopes import Names, Scope, renamed

_MOST_NODES = 100_000
_SMALL = 4096
"""Elements of a known value that may decide about a shape; weights never do."""


@dataclass(slots=True, kw_only=True)
class CleanGraph:
    """A graph whose nodes are in order and whose values have types as far as they are known."""

    nodes: list[Any] = field(default_factory=list)
    types: dict[str, Any] = field(default_factory=dict)
    constants: Constants = field(default_factory=Constants)
    inputs: list[str] = field(default_factory=list)
    outputs: list[str] = field(default_factory=list)
    opsets: list[Any] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def shape(self, name: str) -> tuple[int, ...] | None:
        """The shape of a value; None unless all of it is known."""
        return static_shape(self.types.get(name))


def clean(
    model: Any,
    shapes: Mapping[str, tuple[int, ...]],
    where: str,
    primitive: Container[str] = (),
    told: Mapping[str, Any] | None = None,
) -> CleanGraph:
    """The graph of a model with these shapes of its inputs; raises ModelError where they contradict it.

    Operators that ONNX defines by others are replaced by those unless they are `primitive`. `told` are types
    of values whose operators ONNX does not define.
    """
    if model.functions:
        model = onnx.inliner.inline_local_functions(model)
    cleaner = Cleaner(where, list(model.opset_import), primitive, told or {})
    graph = model.graph
    for tensor in graph.initializer:
        cleaner.result.constants.keep_tensor(tensor.name, tensor)
        cleaner.result.types[tensor.name] = cleaner.result.constants.type_of(tensor.name)
    for value in graph.input:
        if value.name not in cleaner.result.constants:
            cleaner.add_input(value, shapes.get(value.name))
    cleaner.names.take(value.name for value in graph.input)
    cleaner.names.take(name for node in graph.node for name in node.output)
    cleaner.names.take(tensor.name for tensor in graph.initializer)
    scope = Scope(cleaner.names)
    cleaner.walk(graph, scope)
    cleaner.finish([value.name for value in graph.output], scope)
    return cleaner.result


class Cleaner:
    """Takes nodes one by one into `result`."""

    def __init__(
        self, where: str, opsets: list[Any], primitive: Container[str], told: Mapping[str, Any]
    ) -> None:
        self.where = where
        self._primitive = primitive
        self._told = told
        self.result = CleanGraph(opsets=opsets)
        self.names = Names()
        self.versions = {one.domain: one.version for one in opsets}

    def add_input(self, value: Any, shape: tuple[int, ...] | None) -> None:
        """An input of the model, with its shape."""
        kind = value.type
        if shape is not None and kind.HasField("tensor_type"):
            kind = onnx.helper.make_tensor_type_proto(kind.tensor_type.elem_type, list(shape))
        self.result.types[value.name] = kind
        self.result.inputs.append(value.name)

    def walk(self, graph: Any, scope: Scope) -> None:
        """Take all nodes of a graph or of a part of one."""
        for tensor in graph.initializer if scope.inner else ():
            name = scope.fresh(tensor.name)
            self.result.constants.keep_tensor(name, tensor)
            self.result.types[name] = self.result.constants.type_of(name)
        for node in graph.node:
            self.take(node, scope)

    def finish(self, outputs: Sequence[str], scope: Scope) -> None:
        """Give the outputs of the model their own names again, and drop what nobody reads."""
        for name in outputs:
            found = scope.find(name)
            if found != name or name in self.result.constants or name in self.result.inputs:
                plain = name if found != name else f"{name}.out"
                self._append(onnx.helper.make_node("Identity", [found], [plain]))
                self.result.types[plain] = self.result.types.get(found)
                self.result.outputs.append(plain)
            else:
                self.result.outputs.append(name)
        self._drop_unread()

    def take(self, node: Any, scope: Scope) -> None:
        """One node: computed, dissolved into simpler ones, or kept."""
        from tuneloom.tuners.tvm.importing.onnx.cleaning.control import dissolve
        from tuneloom.tuners.tvm.importing.onnx.cleaning.functions import body_of, say_defaults

        inner = renamed(node, scope)
        say_defaults(inner)
        if self._is_known(inner):
            self._rename_outputs(node, inner, scope)
            return
        if dissolve(self, node, inner, scope):
            return
        outputs = [scope.fresh(name) if name else "" for name in node.output]
        del inner.output[:]
        inner.output.extend(outputs)
        types, refusal = self._infer(inner)
        if self._computed(inner, types):
            return
        if refusal is not None:
            raise refusal
        body = None
        if inner.op_type not in self._primitive:
            body = body_of(inner, self.result.types, self.versions)
        if body is not None:
            self.expand(body, inner)
            return
        self._append(inner)
        for name in outputs:
            if name:
                self.result.types[name] = types.get(name)

    def expand(self, body: Any, node: Any) -> None:
        """The nodes of a function in place of a node that calls it."""
        scope = Scope(self.names, inner=True)
        for formal, given in zip(body.input, node.input, strict=False):
            scope.set(formal, given)
        for formal in body.input[len(node.input) :]:
            scope.set(formal, "")
        for formal, given in zip(body.output, node.output, strict=False):
            scope.reserve(formal, given)
        for one in body.node:
            self.take(one, scope)
        for formal, given in zip(body.output, node.output, strict=False):
            if given and scope.find(formal) != given:
                self.alias(given, scope.find(formal))

    def alias(self, name: str, found: str) -> None:
        """Another name for a value; for places where a name is promised already."""
        self._append(onnx.helper.make_node("Identity", [found], [name]))
        self.result.types[name] = self.result.types.get(found)

    def emit(self, kind: str, inputs: Sequence[str], hint: str, **attributes: Any) -> str:
        """A new node with one output; returns its name."""
        scope = Scope(self.names, inner=True)
        self.take(onnx.helper.make_node(kind, list(inputs), [hint], **attributes), scope_over(scope, inputs))
        return scope.find(hint)

    def constant(self, value: Any, hint: str) -> str:
        """A known value under a new name."""
        name = Scope(self.names, inner=True).fresh(hint)
        self.result.constants.keep(name, value)
        self.result.types[name] = self.result.constants.type_of(name)
        return name

    def value(self, name: str) -> Any | None:
        """A known value; None when it is known only when the model runs."""
        return self.result.constants.array(name) if name and name in self.result.constants else None

    def _is_known(self, node: Any) -> bool:
        """Whether the node only passes on its input."""
        kind = node.op_type
        if node.domain not in ("", "ai.onnx"):
            return False
        return kind == "Identity" or (kind == "Dropout" and len([o for o in node.output if o]) == 1)

    def _rename_outputs(self, node: Any, inner: Any, scope: Scope) -> None:
        scope.set(node.output[0], inner.input[0])

    def _infer(self, node: Any) -> tuple[dict[str, Any], ModelError | None]:
        """Types of the outputs, and the error if the inputs contradict the operator.

        Runtimes are more lenient on known values (a scalar may have one element), so the error counts
        only if the node can't be computed.
        """
        told = {name: self._told[name] for name in node.output if name in self._told}
        schema = self._schema(node)
        if schema is None or told:
            return told, None
        constants, types = self.result.constants, self.result.types
        if any(name and types.get(name) is None for name in node.input):
            return {}, None
        known = {
            name: constants.tensor(name)
            for name in node.input
            if name in constants and _count(types[name]) <= _SMALL
        }
        given = {name: types[name] for name in node.input if name}
        try:
            found: dict[str, Any] = onnx.shape_inference.infer_node_outputs(
                schema, node, given, known, opset_imports=self.result.opsets
            )
        except onnx.shape_inference.InferenceError as error:
            return {}, ModelError(f"{self.where}: {_contradiction(node, types, error)}")
        except Exception:
            return {}, None
        if any(_is_negative(kind) for kind in found.values()):
            reason = ValueError("a size of its output would be negative, so they are too small")
            return {}, ModelError(f"{self.where}: {_contradiction(node, types, reason)}")
        return found, None

    def _schema(self, node: Any) -> Any:
        version = self.versions.get(node.domain, self.versions.get("", 1))
        try:
            return onnx.defs.get_schema(node.op_type, version, node.domain)
        except onnx.defs.SchemaError:
            return None

    def _computed(self, node: Any, types: Mapping[str, Any]) -> bool:
        constants = self.result.constants
        values: list[Any] | None = None
        shape = self.result.shape(node.input[0]) if node.input and node.input[0] else None
        if node.op_type in ("Shape", "Size") and shape is not None and node.domain in ("", "ai.onnx"):
            values = [_of_shape(node, shape)]
        elif all(name in constants for name in node.input if name) and may_compute(
            node, [types.get(name) for name in node.output if name]
        ):
            constants.keep_rounded(node)
            values = compute(node, constants, self.result.opsets)
        if values is None:
            return False
        for name, value in zip(node.output, values, strict=True):
            if name:
                constants.keep(name, value)
                self.result.types[name] = constants.type_of(name)
        return True

    def _append(self, node: Any) -> None:
        if len(self.result.nodes) >= _MOST_NODES:
            raise ModelError(
                f"{self.where}: more than {_MOST_NODES} nodes with its loops unrolled; bind smaller shapes"
            )
        self.result.nodes.append(node)

    def _drop_unread(self) -> None:
        read, kept = set(self.result.outputs), []
        for node in reversed(self.result.nodes):
            if any(name in read for name in node.output):
                kept.append(node)
                read.update(captured(node))
        self.result.nodes = kept[::-1]


def first_output(node: Any) -> str:
    """The name by which a node is known: that of the first value it makes."""
    return str(next(name for name in node.output if name))


def captured(node: Any) -> set[str]:
    """All names a node reads, those inside its branches too."""
    names = {name for name in node.input if name}
    for attribute in node.attribute:
        for graph in [attribute.g] if attribute.HasField("g") else list(attribute.graphs):
            for inner in graph.node:
                names |= captured(inner)
            names.update(value.name for value in graph.output)
    return names


def scope_over(scope: Scope, names: Sequence[str]) -> Scope:
    """The scope with these global names standing for themselves."""
    for name in names:
        if name:
            scope.set(name, name)
    return scope


def _count(kind: Any) -> int:
    shape = static_shape(kind)
    if shape is None:
        return _SMALL + 1
    total = 1
    for size in shape:
        total *= size
    return total


def _is_negative(kind: Any) -> bool:
    dims = kind.tensor_type.shape.dim if kind is not None and kind.HasField("tensor_type") else ()
    return any(dim.dim_value < 0 for dim in dims)


def _of_shape(node: Any, shape: tuple[int, ...]) -> Any:
    import numpy as np

    if node.op_type == "Size":
        return np.array(int(np.prod(shape, dtype=np.int64)), dtype=np.int64)
    bounds = {a.name: onnx.helper.get_attribute_value(a) for a in node.attribute}
    return np.array(shape[bounds.get("start", 0) : bounds.get("end")], dtype=np.int64)


def _contradiction(node: Any, types: Mapping[str, Any], error: BaseException) -> str:
    place = f"node {node.name or node.output[0]!r} ({node.op_type})"
    shapes = [static_shape(types.get(name)) for name in node.input if name]
    shown = ", ".join("×".join(map(str, s)) or "1" if s is not None else "?" for s in shapes)
    reason = re.sub(r"^\[\w+\] ", "", reason_of(error))
    return f"{place} can't take inputs of the shapes {shown}: {reason}"
