"""Nodes between two parts that are not worth going back to TVM for."""

import math
from collections.abc import Collection
from typing import Any

from tuneloom.tuners.tvm.importing.onnx.cleaning.graph import CleanGraph, captured, first_output

_MOST_NUMBERS = 4096
"""A kernel on so few takes microseconds; a call of another runtime takes ten times as long."""

_PRODUCTS = frozenset(
    (
        *("Conv", "ConvTranspose", "ConvInteger", "QLinearConv", "MatMul", "MatMulInteger", "QLinearMatMul"),
        *("Gemm", "Einsum", "LSTM", "GRU", "RNN", "Attention"),
    )
)


def with_small_steps(graph: CleanGraph, refused: Collection[str]) -> set[str]:
    """The refused nodes, and small ones that read only what refused ones make and lead to others of them.

    Nodes are known by their first outputs.
    """
    leads = _leading_back(graph, refused)
    found, made = set(refused), set[str]()
    for node in graph.nodes:
        name = first_output(node)
        read = captured(node) - set(graph.constants)
        if name in found or (name in leads and read and read <= made):
            found.add(name)
            made |= {one for one in node.output if one}
    return found


def _leading_back(graph: CleanGraph, refused: Collection[str]) -> set[str]:
    """Small nodes from which a way over small nodes leads to a refused one."""
    wanted: set[str] = set()
    found: set[str] = set()
    for node in reversed(graph.nodes):
        small = first_output(node) not in refused and _is_small(graph, node)
        if first_output(node) in refused or (small and not wanted.isdisjoint(node.output)):
            wanted |= captured(node)
            found |= {first_output(node)} if small else set()
    return found


def _is_small(graph: CleanGraph, node: Any) -> bool:
    shapes = [graph.shape(name) for name in (*node.output, *captured(node)) if name not in graph.constants]
    known = [math.prod(shape) for shape in shapes if shape is not None]
    return node.op_type not in _PRODUCTS and len(known) == len(shapes) and max(known) <= _MOST_NUMBERS
