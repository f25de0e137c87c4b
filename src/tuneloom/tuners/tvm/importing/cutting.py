"""Nodes that TVM can't take, gathered into parts that another runtime runs."""

from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import Any

from tuneloom.tuners.tvm.importing.cleaning.assembling import assembled, part_of
from tuneloom.tuners.tvm.importing.cleaning.graph import CleanGraph, captured
from tuneloom.tuners.tvm.importing.relax import ForeignPart

DOMAIN = "tuneloom"
KIND = "Part"
ALL = ("*",)
"""Stands for all nodes of a graph where nodes are named."""


def cut(
    graph: CleanGraph, refused: Collection[str], digest: str
) -> tuple[CleanGraph, dict[str, ForeignPart]]:
    """The graph with one node for each part, and the parts by the name of that node.

    `refused` are nodes by their first output. Neighbours are in one part unless a node
    between them would then have to run before and after it.
    """
    groups = _groups(graph, refused)
    parts: dict[str, ForeignPart] = {}
    nodes: list[Any] = [node for node in graph.nodes if first_output(node) not in groups]
    for number in sorted(set(groups.values())):
        inside = [node for node in graph.nodes if groups.get(first_output(node)) == number]
        node, part = _part(graph, inside, f"{DOMAIN}.{digest[:16]}.{number}")
        parts[node.name] = part
        nodes.append(node)
    return replace(graph, nodes=_ordered(nodes, graph)), parts


def left_whole(graph: CleanGraph, model: Any, digest: str) -> tuple[CleanGraph, dict[str, ForeignPart]]:
    """The graph as one node that runs all of the model, and that part by the name of the node.

    It is the model as its user has it wherever that has the same interface: another runtime may know
    operators that were replaced when the graph was cleaned.
    """
    from onnx import helper

    function = f"{DOMAIN}.{digest[:16]}.whole"
    node = helper.make_node(KIND, graph.inputs, graph.outputs, name=function, domain=DOMAIN)
    given = {tensor.name for tensor in model.graph.initializer}
    inputs = [value.name for value in model.graph.input if value.name not in given]
    same = inputs == graph.inputs and [value.name for value in model.graph.output] == graph.outputs
    content = model if same else assembled(graph)
    operators = tuple(dict.fromkeys(one.op_type for one in graph.nodes))
    part = ForeignPart(function=function, operators=operators, content=content.SerializeToString())
    return replace(graph, nodes=[node]), {function: part}


def _groups(graph: CleanGraph, refused: Collection[str]) -> dict[str, int]:
    """The number of the part of every refused node.

    `behind` are the parts that must have run before a value exists, on a way that leaves them:
    a node that reads such a value can't belong to any of them.
    """
    groups: dict[str, int] = {}
    made_by: dict[str, int] = {}
    behind: dict[str, frozenset[int]] = {}
    for node in graph.nodes:
        read = captured(node)
        waits = frozenset().union(*(behind.get(name, frozenset()) for name in read))
        near = {made_by[name] for name in read if name in made_by}
        if first_output(node) in refused:
            free = sorted(near - waits)
            own = free[0] if free else len(set(groups.values()))
            groups[first_output(node)] = own
            waits |= near - {own}
            made_by.update((name, own) for name in node.output if name)
        else:
            waits |= near
        behind.update((name, waits) for name in node.output if name)
    return groups


def _part(graph: CleanGraph, inside: Sequence[Any], function: str) -> tuple[Any, ForeignPart]:
    from onnx import helper

    made = {name for node in inside for name in node.output if name}
    outside = [
        node for node in graph.nodes if first_output(node) not in {first_output(one) for one in inside}
    ]
    wanted = {name for node in outside for name in captured(node)} | set(graph.outputs)
    read = dict.fromkeys(name for node in inside for name in sorted(captured(node)))
    inputs = [
        name for name in read if name not in made and name not in graph.constants and name in graph.types
    ]
    outputs = [name for node in inside for name in node.output if name in wanted]
    model = part_of(graph, inside, inputs, outputs)
    part = ForeignPart(
        function=function,
        operators=tuple(dict.fromkeys(node.op_type for node in inside)),
        content=model.SerializeToString(),
    )
    return helper.make_node(KIND, inputs, outputs, name=function, domain=DOMAIN), part


def _ordered(nodes: Sequence[Any], graph: CleanGraph) -> list[Any]:
    """The nodes, each after those it reads from."""
    made = {name: node for node in nodes for name in node.output if name}
    done: dict[int, Any] = {}
    for root in nodes:
        waiting = [(root, False)]
        while waiting:
            node, ready = waiting.pop()
            if ready:
                done.setdefault(id(node), node)
            elif id(node) not in done:
                waiting.append((node, True))
                waiting += [(made[name], False) for name in captured(node) if name in made]
    return list(done.values())


def first_output(node: Any) -> str:
    """The name by which a node is known: that of the first value it makes."""
    return str(next(name for name in node.output if name))


def foreign_call(node: Any, inputs: Sequence[Any], graph: CleanGraph, bb: Any, function: str) -> Any:
    """A call of the function that will run a part, with the types its node has in the graph."""
    from onnx import helper
    from tvm import relax

    types = []
    for name in node.output:
        if name:
            kind = str(helper.tensor_dtype_to_np_dtype(graph.types[name].tensor_type.elem_type))
            types.append(relax.TensorType(graph.shape(name), kind))
    values = [one if isinstance(one, relax.Var) else bb.emit(one) for one in inputs]
    result = bb.emit(relax.call_dps_packed(function, relax.Tuple(values), types))
    if len(types) == 1:
        return result
    fields = iter(bb.emit(relax.TupleGetItem(result, place)) for place in range(len(types)))
    return relax.Tuple([next(fields) if name else relax.const(0) for name in node.output])
