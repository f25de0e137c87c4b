"""A clean graph as an ONNX model again."""

import hashlib
from collections.abc import Sequence
from typing import Any

from tuneloom.compiler.lazy import onnx
from tuneloom.tuners.tvm.importing.onnx.cleaning.graph import CleanGraph, captured


def assembled(clean: CleanGraph) -> Any:
    """The clean graph as a model; initialisers of the same content are there once."""
    return part_of(clean, clean.nodes, clean.inputs, clean.outputs)


def part_of(
    clean: CleanGraph,
    nodes: Sequence[Any],
    inputs: Sequence[str],
    outputs: Sequence[str],
    opsets: Sequence[Any] = (),
) -> Any:
    """Some nodes of a clean graph as a model of their own, of these versions or of the graph's."""
    read = {name for node in nodes for name in captured(node)}
    tensors, same = _shared(clean, sorted(name for name in read if name in clean.constants))
    graph = onnx.helper.make_graph(
        [_reading(node, same) for node in nodes],
        "clean",
        [onnx.helper.make_value_info(name, clean.types[name]) for name in inputs],
        [onnx.helper.make_value_info(name, clean.types.get(name) or onnx.TypeProto()) for name in outputs],
        tensors,
    )
    return onnx.helper.make_model(graph, opset_imports=list(opsets) or clean.opsets, ir_version=10)


def _shared(clean: CleanGraph, names: Sequence[str]) -> tuple[list[Any], dict[str, str]]:
    """Initialisers, each content once, and under which name each value is found."""
    first: dict[bytes, str] = {}
    tensors, same = [], {}
    for name in names:
        tensor = clean.constants.tensor(name)
        tensor.name = ""
        key = hashlib.sha256(tensor.SerializeToString(deterministic=True)).digest()
        same[name] = first.setdefault(key, name)
        if same[name] == name:
            tensor.name = name
            tensors.append(tensor)
    return tensors, same


def _reading(node: Any, same: dict[str, str]) -> Any:
    """The node with the shared names; branches keep theirs, so they keep their own copies."""
    if not any(same.get(name, name) != name for name in node.input):
        return node
    copy = type(node)()
    copy.CopyFrom(node)
    for index, name in enumerate(copy.input):
        copy.input[index] = same.get(name, name)
    return copy
