"""What pieces of a graph take in TVM, told by the order of the model's kernels: nothing is lowered again."""

from collections.abc import Iterator, Mapping, Sequence

from tuneloom.tuners.tvm.lowering.tasks import kernel_class

_NODES = frozenset({"Conv", "ConvTranspose", "MatMul", "Gemm"})
_KERNELS = ("conv", "matmul", "dense", "product")
_PREPARING = "winograd_input"
"""Kernels that belong to the product behind them; all others belong to the one before."""


def shared_out_in_order(
    seconds: Mapping[str, float], calls: Sequence[str], pieces: Sequence[Sequence[str]]
) -> list[float] | None:
    """The time of a model's kernels by piece; pieces are given by the operators of their nodes.

    Products and convolutions come in the graph's order, and each takes its neighbours along, so at a cut some
    may count for the wrong side. None if they are not as many as in the graph: some were divided or joined.
    """
    places = [place for place, nodes in enumerate(pieces) for node in nodes if node in _NODES]
    if not places or sum(map(_is_product, calls)) != len(places):
        return None
    found = [0.0] * len(pieces)
    for name, place in zip(calls, _places(calls, places), strict=True):
        found[place] += seconds.get(name, 0.0)
    return found


def _is_product(name: str) -> bool:
    return any(word in kernel_class(name) for word in _KERNELS)


def _places(calls: Sequence[str], places: Sequence[int]) -> Iterator[int]:
    """For each call the piece that it belongs to."""
    passed = 0
    for name in calls:
        passed += _is_product(name)
        ahead = kernel_class(name).startswith(_PREPARING) and passed < len(places)
        yield places[passed] if ahead else places[max(0, passed - 1)]
