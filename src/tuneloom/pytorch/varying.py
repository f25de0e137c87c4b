"""Dynamic dimensions of an exported program, as ranges of sizes."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch

from tuneloom.errors import ModelError
from tuneloom.model.sizes import Ranges, range_of

Bounds = tuple[tuple[int, int], ...]
"""The least and the greatest size of each dimension of an input."""


@dataclass(frozen=True, slots=True, kw_only=True)
class VaryingInputs:
    """Inputs of which a dimension varies: their bounds by their places, and by their names for a job."""

    places: dict[int, Bounds]
    named: Ranges

    @classmethod
    def of(cls, program: Any) -> "VaryingInputs | None":
        """Those of an exported program; None if its shapes are fixed.

        Raises ModelError if a dimension has no greatest size, InputError if several vary.
        """
        names = list(program.graph_signature.user_inputs)
        values = {node.name: node.meta.get("val") for node in program.graph.nodes if node.op == "placeholder"}
        places = {
            place: tuple(_bounds(name, size, program) for size in values[name].shape)
            for place, name in enumerate(names)
            if isinstance(values.get(name), torch.Tensor)
        }
        varying = {n: pairs for n, pairs in places.items() if any(low < high for low, high in pairs)}
        if not varying:
            return None
        found = cls(places=varying, named={names[n]: pairs for n, pairs in varying.items()})
        range_of(found.named)
        return found

    @property
    def shapes(self) -> dict[str, list[int | str]]:
        """The shapes of a job."""
        return {
            name: [f"{low}..{high}" if low < high else low for low, high in pairs]
            for name, pairs in self.named.items()
        }

    def fits(self, place: int, shape: Sequence[int]) -> bool:
        """Whether an input may have this shape."""
        bounds = self.places[place]
        return len(shape) == len(bounds) and all(
            low <= size <= high for size, (low, high) in zip(shape, bounds, strict=True)
        )


def _bounds(name: str, size: Any, program: Any) -> tuple[int, int]:
    """Between which numbers a size lies; 2 as the least stands for any small number in PyTorch."""
    if isinstance(size, int):
        return size, size
    known = program.range_constraints.get(size.node.expr)
    try:
        low, high = int(known.lower), int(known.upper)
    except (AttributeError, OverflowError, TypeError, ValueError):
        raise ModelError(
            f"a dimension of {name!r} has no greatest size; give it one: torch.export.Dim('size', max=64)"
        ) from None
    return (1 if low <= 2 else low), high
