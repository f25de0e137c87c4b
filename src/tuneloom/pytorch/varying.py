"""Dynamic dimensions of exported programs and of dynamo's graphs, as ranges of sizes."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from tuneloom.errors import ModelError
from tuneloom.model.sizes import MOST_SIZES, Ranges, range_of

Bounds = tuple[tuple[int, int], ...]
"""The least and the greatest size of each dimension of an input."""
_ROOM = 64
"""The least that the greatest size of a dimension without bounds is."""


@dataclass(frozen=True, slots=True, kw_only=True)
class VaryingInputs:
    """Inputs of which a dimension varies: their bounds by their places, and by their names for a job."""

    places: dict[int, Bounds]
    named: Ranges
    numbers: tuple[int, ...] = ()
    """Places of inputs that are the size itself, as a number."""

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

    def fit(self, forms: Sequence[Any], examples: Sequence[Any]) -> bool:
        """Whether inputs of these forms (shape, type, device) are like the examples but for their size."""
        return len(forms) == len(examples) and all(map(self._fits, range(len(forms)), forms, examples))

    def _fits(self, place: int, form: Any, example: Any) -> bool:
        if place in self.numbers:
            return True  # it is the size of a tensor, which is looked at
        if place not in self.places:
            return bool(form == example)
        shape, bounds = form[0], self.places[place]
        return (
            form[1:] == example[1:]
            and len(shape) == len(bounds)
            and all(low <= size <= high for size, (low, high) in zip(shape, bounds, strict=True))
        )


class OpenSizes:
    """The symbols in the shapes of a dynamo graph's inputs: which one varies is seen from calls.

    A graph of which all dimensions are dynamic has many, and usually one of them varies.
    """

    def __init__(self, symbols: Mapping[str, tuple[int, int]], shapes: Mapping[int, Sequence[Any]]) -> None:
        self._symbols, self._shapes = dict(symbols), dict(shapes)
        self._seen: list[dict[str, int]] = []

    @classmethod
    def of(cls, module: Any, inputs: Sequence[int]) -> "OpenSizes":
        """Those of a graph's placeholders; none where sizes are results, or are computed from others."""
        nodes = module.graph.find_nodes(op="placeholder")
        values = {n: nodes[place].meta.get("example_value") for n, place in enumerate(inputs)}
        shapes = {n: tuple(map(_settled, getattr(value, "shape", (value,)))) for n, value in values.items()}
        sizes = {str(one): one for shape in shapes.values() for one in shape if isinstance(one, torch.SymInt)}
        (results,) = module.graph.output_node().args
        tensors = [torch.is_tensor(one.meta.get("example_value")) for one in results if hasattr(one, "meta")]
        if not all(tensors) or not all(one.node.expr.is_symbol for one in sizes.values()):
            return cls({}, {})
        return cls({name: _known_bounds(one) for name, one in sizes.items()}, shapes)

    def varying(self, inputs: Sequence[Any]) -> VaryingInputs | None:
        """The inputs with the one dimension that varies, as far as calls have told; None if none does."""
        if not self._symbols:
            return None
        found = self._sizes(inputs)
        name = self._differing(found)
        self._seen.append(found)
        if name is None:
            return None
        low, high = self._symbols[name]
        roomy = max(_ROOM, 1 << (2 * found[name] - 1).bit_length())
        pair = (low, high if high - low < MOST_SIZES else min(high, roomy))
        shapes = {n: shape for n, shape in self._shapes.items() if name in map(str, shape)}
        places = {
            n: tuple(
                pair if str(one) == name else (own, own)
                for one, own in zip(shape, inputs[n].shape, strict=True)
            )
            for n, shape in shapes.items()
            if torch.is_tensor(inputs[n])
        }
        numbers = tuple(n for n in shapes if n not in places)
        return VaryingInputs(places=places, named={}, numbers=numbers) if places else None

    def _sizes(self, inputs: Sequence[Any]) -> dict[str, int]:
        """What the symbols are in a call."""
        own = {n: getattr(inputs[n], "shape", (inputs[n],)) for n in self._shapes}
        pairs = (pair for n, shape in self._shapes.items() for pair in zip(shape, own[n], strict=True))
        return {str(one): size for one, size in pairs if str(one) in self._symbols}

    def _differing(self, found: Mapping[str, int]) -> str | None:
        """The only symbol, or the only one that differs from an earlier call."""
        if len(self._symbols) == 1:
            return next(iter(self._symbols))
        for seen in self._seen:
            names = [name for name, size in found.items() if seen[name] != size]
            if len(names) == 1:
                return names[0]
        return None


def has_sizes_open(module: Any) -> bool:
    """Whether dynamo calls a graph with several sizes of its inputs: otherwise it compares them itself."""
    values = [node.meta.get("example_value") for node in module.graph.find_nodes(op="placeholder")]
    return not all(isinstance(one, torch.Tensor) and not one._has_symbolic_sizes_strides for one in values)


def _settled(size: Any) -> Any:
    """A size, as a number if dynamo has found that it can only be one."""
    is_number = isinstance(size, torch.SymInt) and size.node.expr.is_number
    return int(size.node.expr) if is_number else size


def _known_bounds(size: Any) -> tuple[int, int]:
    """Between which numbers dynamo takes a size to be; the greatest is a huge one if nobody knows."""
    known = size.node.shape_env.var_to_range[size.node.expr]
    try:
        return int(known.lower), int(known.upper)
    except (OverflowError, TypeError, ValueError, AttributeError):
        return int(known.lower), 1 << 62


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
