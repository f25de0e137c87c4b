"""Parts of a graph as ONNX Runtime accepts them: it may lag behind the versions that files have."""

from collections.abc import Iterator, Sequence
from typing import Any

from tuneloom.compiler.lazy import onnx
from tuneloom.errors import ModelError, reason_of
from tuneloom.tuners.tvm.importing.onnx.cleaning.assembling import part_of
from tuneloom.tuners.tvm.importing.onnx.cleaning.functions import CHANGED
from tuneloom.tuners.tvm.importing.onnx.cleaning.graph import CleanGraph
from tuneloom.tuners.tvm.runner.runtimes import onnx_session

_BEFORE_MORE_TYPES = (27, 21)
"""With the versions of ONNX after these many operators got another type, and most of them nothing else."""
REPLACE = "replace it in the model or export with other operators"


def accepted_part(
    graph: CleanGraph, nodes: Sequence[Any], inputs: Sequence[str], outputs: Sequence[str]
) -> bytes:
    """These nodes as a model, of the oldest version in which they mean the same.

    Raises ModelError, in ONNX Runtime's words, if it takes them in no version.
    """
    refusal = ""
    for version in _versions(graph, nodes):
        content: bytes = part_of(graph, nodes, inputs, outputs, _opsets(graph, version)).SerializeToString()
        why = _refusal(content)
        if why is None:
            return content
        refusal = refusal or why
    kinds = {node.op_type: node for node in reversed(nodes)}.values()  # the first of each kind
    words = ", ".join(named(node, node.name) for node in reversed(kinds))
    raise ModelError(f"neither TVM nor ONNX Runtime runs operator {words}: {refusal}; {REPLACE}")


def named(node: Any, name: str) -> str:
    """A node as its author knows it: the operator and its own name, or else an output."""
    kind = f"{node.domain}.{node.op_type}" if node.domain else node.op_type
    return f"{kind} (node {name or f'with output {node.output[0]!r}'})"


def _versions(graph: CleanGraph, nodes: Sequence[Any]) -> list[int]:
    """Versions to try: the oldest that is exact, then older ones that should be."""
    own = _own_version(graph)
    since = {
        node.op_type: int(onnx.defs.get_schema(node.op_type, own, "").since_version)
        for node in _with_inner(nodes)
        if node.domain in ("", "ai.onnx") and onnx.defs.has(node.op_type, "")
    }
    needed = max(since.values(), default=own)
    older = [
        version
        for version in _BEFORE_MORE_TYPES
        if version < needed and all(n <= version or kind not in CHANGED for kind, n in since.items())
    ]
    return [needed, *older, own]


def _with_inner(nodes: Sequence[Any]) -> Iterator[Any]:
    """The nodes and those in their branches and bodies."""
    for node in nodes:
        yield node
        for attribute in node.attribute:
            for graph in [attribute.g] if attribute.HasField("g") else list(attribute.graphs):
                yield from _with_inner(graph.node)


def _own_version(graph: CleanGraph) -> int:
    return max((one.version for one in graph.opsets if one.domain in ("", "ai.onnx")), default=1)


def _opsets(graph: CleanGraph, version: int) -> list[Any]:
    others = [one for one in graph.opsets if one.domain not in ("", "ai.onnx")]
    return [onnx.helper.make_opsetid("", version), *others]


def _refusal(content: bytes) -> str | None:
    """Why ONNX Runtime can't run a model; None if it can."""
    try:
        onnx_session(content, threads=1)
    except Exception as error:
        return reason_of(error)
    return None
