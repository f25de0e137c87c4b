"""Branches and loops dissolved into plain nodes, where that is possible."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from tuneloom.compiler.lazy import onnx
from tuneloom.errors import ModelError
from tuneloom.tuners.tvm.importing.onnx.cleaning.constants import static_shape
from tuneloom.tuners.tvm.importing.onnx.cleaning.masked import as_masked_lstm, is_masked_lstm
from tuneloom.tuners.tvm.importing.onnx.cleaning.scopes import Scope

MOST_TURNS = 1024
MOST_UNROLLED = 4000
"""Nodes that a loop may become: more take minutes to compile, and the loop is left to another runtime."""


def dissolve(cleaner: Any, node: Any, inner: Any, scope: Scope) -> bool:
    """Replace a branch or a loop by its nodes; False when it is none, or when it has to stay.

    `node` has the names of its scope, `inner` the global ones.
    """
    if node.domain not in ("", "ai.onnx"):
        return False
    handlers = {"If": _branch, "Loop": _loop, "Scan": _scan}
    handler = handlers.get(node.op_type)
    if handler is None:
        return False
    before = len(cleaner.result.nodes)
    done = handler(cleaner, node, inner, scope)
    if not done:
        del cleaner.result.nodes[before:]
    return done


def _branch(cleaner: Any, node: Any, inner: Any, scope: Scope) -> bool:
    graphs = {a.name: a.g for a in node.attribute}
    condition = cleaner.value(inner.input[0])
    if condition is not None:
        taken = graphs["then_branch" if bool(np.all(condition)) else "else_branch"]
        for name, found in zip(node.output, _walked(cleaner, taken, scope), strict=True):
            scope.set(name, found)
        return True
    before = len(cleaner.result.nodes)
    walked = {name: _possible(cleaner, graphs[name], scope) for name in ("then_branch", "else_branch")}
    possible = {name: names for name, names in walked.items() if not isinstance(names, ModelError)}
    sides = list(possible.values())
    if len(sides) < 2:
        only = _only(walked)
        cleaner.result.notes.append(
            f"node {node.name or node.output[0]!r}: only its {only} fits these shapes; it is always taken"
        )
        for name, one in zip(node.output, sides[0], strict=True):
            scope.set(name, one)
        return True
    types = cleaner.result.types
    same = all(_same(types.get(a), types.get(b)) for a, b in zip(*sides, strict=True))
    if not same or _may_trap(cleaner, cleaner.result.nodes[before:]):
        return False
    chooser = _scalar(cleaner, inner.input[0])
    for name, then, other in zip(node.output, *sides, strict=True):
        scope.set(name, cleaner.emit("Where", [chooser, then, other], name))
    return True


def _loop(cleaner: Any, node: Any, inner: Any, scope: Scope) -> bool:
    """Unrolled when the number of turns is known, or bounded with a condition that ends it early."""
    if as_masked_lstm(cleaner, node, inner, scope):
        return True
    body = node.attribute[0].g
    most = _number(cleaner, inner.input[0])
    going = inner.input[1] if len(inner.input) > 1 else ""
    carried = list(inner.input[2:])
    if inner.input[0] and (most is None or _is_long(body, most)):
        return False
    collected: list[list[str]] = [[] for _ in range(len(body.output) - 1 - len(carried))]
    turn = 0
    while most is None or turn < most:
        known = True if not going else cleaner.value(going)
        if known is not None and not bool(np.all(known)):
            break
        if _is_long(body, turn + 1) or (known is None and (collected or most is None)):
            return False
        first = cleaner.constant(np.array(turn, dtype=np.int64), "turn")
        state = going or cleaner.constant(np.array(True), "going")
        found = _walked(cleaner, body, scope, [first, state, *carried])
        fresh = found[1 : 1 + len(carried)]
        if known is None:
            chosen = _chosen(cleaner, going, fresh, carried)
            if chosen is None:
                return False
            fresh = chosen
        carried = fresh
        going = found[0] if known is not None else cleaner.emit("And", [going, found[0]], "going")
        for values, value in zip(collected, found[1 + len(carried) :], strict=True):
            values.append(value)
        turn += 1
    if any(not values for values in collected):
        return False
    stacked = [_stacked(cleaner, values, 0) for values in collected]
    for name, found_name in zip(node.output, [*carried, *stacked], strict=False):
        if name:
            scope.set(name, found_name)
    return True


def _scan(cleaner: Any, node: Any, inner: Any, scope: Scope) -> bool:
    attributes = {a.name: a for a in node.attribute}
    body, count = attributes["body"].g, attributes["num_scan_inputs"].i
    if cleaner.versions.get("", 1) < 9 or is_masked_lstm(node):
        return False
    carried, scanned = (
        list(inner.input[: len(inner.input) - count]),
        list(inner.input[len(inner.input) - count :]),
    )
    axes = _listed(attributes, "scan_input_axes", count)
    backwards = _listed(attributes, "scan_input_directions", count)
    shapes = [cleaner.result.shape(name) for name in scanned]
    if any(shape is None for shape in shapes):
        return False
    turns = shapes[0][axes[0]]
    outputs = len(body.output) - len(carried)
    collected: list[list[str]] = [[] for _ in range(outputs)]
    if turns <= 0 or _is_long(body, turns):
        return False
    for turn in range(turns):
        slices = []
        for name, axis, back in zip(scanned, axes, backwards, strict=True):
            index = cleaner.constant(np.array(turns - 1 - turn if back else turn, dtype=np.int64), "index")
            slices.append(cleaner.emit("Gather", [name, index], "slice", axis=axis))
        found = _walked(cleaner, body, scope, [*carried, *slices])
        carried = found[: len(carried)]
        for values, value in zip(collected, found[len(carried) :], strict=True):
            values.append(value)
    out_axes = _listed(attributes, "scan_output_axes", outputs)
    out_back = _listed(attributes, "scan_output_directions", outputs)
    stacked = [
        _stacked(cleaner, values[::-1] if back else values, axis)
        for values, axis, back in zip(collected, out_axes, out_back, strict=True)
    ]
    for name, found_name in zip(node.output, [*carried, *stacked], strict=False):
        if name:
            scope.set(name, found_name)
    return True


def _is_long(body: Any, turns: int) -> bool:
    return turns > MOST_TURNS or turns * len(body.node) > MOST_UNROLLED


def _walked(cleaner: Any, graph: Any, scope: Scope, given: Sequence[str] = ()) -> list[str]:
    """Take the nodes of a branch or body, with these inputs; the global names of its outputs."""
    own = Scope(cleaner.names, scope)
    for value, name in zip(graph.input, given, strict=bool(given)):
        own.set(value.name, name)
    cleaner.walk(graph, own)
    return [own.find(value.name) for value in graph.output]


def _possible(cleaner: Any, graph: Any, scope: Scope) -> list[str] | ModelError:
    """The outputs of a branch, or why it can never be taken with these shapes."""
    try:
        return _walked(cleaner, graph, scope)
    except ModelError as error:
        return error


def _only(walked: Mapping[str, list[str] | ModelError]) -> str:
    """The one branch that fits the shapes; raises ModelError if none does."""
    for name, names in walked.items():
        if not isinstance(names, ModelError):
            return name
    raise next(error for error in walked.values() if isinstance(error, ModelError))


def _chosen(cleaner: Any, going: str, fresh: Sequence[str], old: Sequence[str]) -> list[str] | None:
    """Values of this turn if the loop still goes on, else those from before; None if types differ."""
    types = cleaner.result.types
    if not all(_same(types.get(a), types.get(b)) for a, b in zip(fresh, old, strict=True)):
        return None
    chooser = _scalar(cleaner, going)
    return [cleaner.emit("Where", [chooser, a, b], "carried") for a, b in zip(fresh, old, strict=True)]


def _stacked(cleaner: Any, values: Sequence[str], axis: int) -> str:
    if cleaner.versions.get("", 1) >= 13:
        axes = cleaner.constant(np.array([axis], dtype=np.int64), "axes")
        parts = [cleaner.emit("Unsqueeze", [value, axes], "turn") for value in values]
    else:
        parts = [cleaner.emit("Unsqueeze", [value], "turn", axes=[axis]) for value in values]
    return str(cleaner.emit("Concat", parts, "turns", axis=axis))


def _scalar(cleaner: Any, condition: str) -> str:
    if cleaner.result.shape(condition) == ():
        return condition
    empty = cleaner.constant(np.array([], dtype=np.int64), "scalar")
    return str(cleaner.emit("Reshape", [condition, empty], "condition"))


def _same(one: Any, other: Any) -> bool:
    shape = static_shape(one)
    if shape is None or shape != static_shape(other):
        return False
    return bool(one.tensor_type.elem_type == other.tensor_type.elem_type)


def _number(cleaner: Any, name: str) -> int | None:
    value = cleaner.value(name)
    return None if value is None else int(np.asarray(value).reshape(-1)[0])


def _listed(attributes: Mapping[str, Any], name: str, count: int) -> list[int]:
    return list(attributes[name].ints) if name in attributes else [0] * count


def _may_trap(cleaner: Any, nodes: Sequence[Any]) -> bool:
    """Whether running a branch in vain could end the program: whole numbers divided by what may be zero."""
    types, floats = (
        cleaner.result.types,
        (onnx.TensorProto.FLOAT, onnx.TensorProto.DOUBLE, onnx.TensorProto.FLOAT16),
    )
    for node in nodes:
        if node.op_type in ("Div", "Mod") and node.input[1] not in cleaner.result.constants:
            kind = types.get(node.input[1])
            if kind is None or kind.tensor_type.elem_type not in floats:
                return True
    return False
