"""Nodes that TVM can't take, gathered into parts that another runtime runs."""

import hashlib
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any

from tuneloom.compiler.lazy import onnx, relax
from tuneloom.tuners.tvm.importing.onnx.accepted import accepted_part
from tuneloom.tuners.tvm.importing.onnx.cleaning.graph import CleanGraph, captured, first_output
from tuneloom.tuners.tvm.importing.onnx.crossing import crosses, relax_type
from tuneloom.tuners.tvm.importing.onnx.small_steps import with_small_steps
from tuneloom.tuners.tvm.importing.relax import ForeignPart

DOMAIN = "tuneloom"
KIND = "Part"


def cut(graph: CleanGraph, refused: Collection[str]) -> tuple[CleanGraph, dict[str, ForeignPart]]:
    """The graph with one node for each part, and the parts by the name of that node.

    `refused` are nodes by their first output. Neighbours are in one part unless a node
    between them would then have to run before and after it; small nodes between two parts join them.
    """
    refused = with_small_steps(graph, _with_owners(graph, refused))
    groups = _groups(graph, refused)
    if _is_torn(graph, groups):
        groups = dict.fromkeys(_between(graph, refused), 0)
    parts: dict[str, ForeignPart] = {}
    nodes: list[Any] = [node for node in graph.nodes if first_output(node) not in groups]
    for number in sorted(set(groups.values())):
        inside = [node for node in graph.nodes if groups.get(first_output(node)) == number]
        node, part = _part(graph, inside, number)
        parts[node.name] = part
        nodes.append(node)
    return replace(graph, nodes=_ordered(nodes, graph)), parts


def _with_owners(graph: CleanGraph, refused: Collection[str]) -> set[str]:
    """The refused nodes and all that share with them a value which only its own runtime can hold."""
    found = set(refused)
    kept = {name for node in graph.nodes for name in node.output if not crosses(graph.types.get(name))}
    while True:
        held = {n for node in graph.nodes if first_output(node) in found for n in _touched(node)} & kept
        more = {first_output(node) for node in graph.nodes if not held.isdisjoint(_touched(node))} - found
        if not more:
            return found
        found |= more


def _touched(node: Any) -> set[str]:
    return captured(node) | {name for name in node.output if name}


def _is_torn(graph: CleanGraph, groups: Mapping[str, int]) -> bool:
    """Whether a value that can't leave its part is read in another one."""
    made_in = {name: groups.get(first_output(node)) for node in graph.nodes for name in node.output}
    return any(
        made_in[name] != groups.get(first_output(node))
        for node in graph.nodes
        for name in captured(node)
        if name in made_in and not crosses(graph.types.get(name))
    )


def _between(graph: CleanGraph, refused: Collection[str]) -> set[str]:
    """The refused nodes and all that lie on a way from one of them to another."""
    return _reached(graph.nodes, refused, forwards=True) & _reached(graph.nodes, refused, forwards=False)


def _reached(nodes: Sequence[Any], refused: Collection[str], *, forwards: bool) -> set[str]:
    found: set[str] = set()
    values: set[str] = set()
    for node in nodes if forwards else reversed(nodes):
        made = {name for name in node.output if name}
        near, far = (captured(node), made) if forwards else (made, captured(node))
        if first_output(node) in refused or not values.isdisjoint(near):
            found.add(first_output(node))
            values |= far
    return found


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


def _part(graph: CleanGraph, inside: Sequence[Any], number: int) -> tuple[Any, ForeignPart]:
    """A node that stands for others, and these; named by its content: a process may have many models."""
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
    content = accepted_part(graph, inside, inputs, outputs)
    function = f"{DOMAIN}.{hashlib.sha256(content).hexdigest()[:16]}.{number}"
    part = ForeignPart(
        function=function,
        operators=tuple(dict.fromkeys(node.op_type for node in inside)),
        content=content,
    )
    return onnx.helper.make_node(KIND, inputs, outputs, name=function, domain=DOMAIN), part


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


def foreign_call(node: Any, inputs: Sequence[Any], graph: CleanGraph, bb: Any, function: str) -> Any:
    """A call of the function that will run a part, with the types its node has in the graph.

    It writes into memory planned for its outputs; where the shape of one depends on data, it brings its own.
    """
    types = [relax_type(graph.types.get(name)) for name in node.output if name]
    values = [one if isinstance(one, relax.Var) else bb.emit(one) for one in inputs]
    if all(getattr(kind, "shape", None) is not None for kind in types):
        result = bb.emit(relax.call_dps_packed(function, relax.Tuple(values), types))
    else:
        whole = types[0] if len(types) == 1 else relax.TupleType(types)
        result = bb.emit(relax.call_pure_packed(function, *values, ty_args=whole))
    if len(types) == 1:
        return result
    fields = iter(bb.emit(relax.TupleGetItem(result, place)) for place in range(len(types)))
    return relax.Tuple([next(fields) if name else relax.const(0) for name in node.output])
