"""Which of a bundle's shapes fits some values, and how smaller ones are padded to it."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np

from tuneloom.errors import InputError
from tuneloom.model import TensorInfo
from tuneloom.tuners.tvm.models.compiling.running import Array

Shape = tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class FittingVariant:
    """The variant to run, and the values as it takes them; `given` are their shapes before padding."""

    variant: int
    values: list[Array]
    given: tuple[Shape, ...]

    def cut(self, outputs: Sequence[Array]) -> list[Array]:
        """Outputs without what padding added.

        An axis of an output is cut where an input has the same size on the same axis and was padded there.
        """
        return [self._cut_one(output) for output in outputs]

    def _cut_one(self, output: Array) -> Array:
        for value, given in zip(self.values, self.given, strict=True):
            for axis, (size, own) in enumerate(zip(value.shape, given, strict=True)):
                if size != own and axis < output.ndim and output.shape[axis] == size:
                    output = output[(slice(None),) * axis + (slice(own),)]
        return output


Form = tuple[Shape, Any]
"""A shape, and a type as NumPy has it; None for one that it lacks."""


def forms(infos: Sequence[TensorInfo]) -> tuple[Form, ...]:
    """What `fits_exactly` compares values with, found once since every run asks."""
    return tuple((info.shape, _type(info.dtype)) for info in infos)


def _type(name: str) -> Any:
    try:
        return np.dtype(name)
    except TypeError:
        return None


def fits_exactly(values: Sequence[Array], wanted: Sequence[Form]) -> bool:
    """Whether values have the shapes and types of the inputs already."""
    if len(values) != len(wanted):
        return False
    for value, (shape, kind) in zip(values, wanted, strict=True):
        if kind is None or value.shape != shape or value.dtype != kind:
            return False
    return True


def choose(values: Sequence[Array], variants: Sequence[Sequence[TensorInfo]], pad: bool) -> FittingVariant:
    """The variant whose inputs have these shapes; with `pad` else the smallest that holds them.

    Raises InputError that names the input which does not fit, and the shapes there are.
    """
    given = tuple(tuple(value.shape) for value in values)
    exact = [n for n, infos in enumerate(variants) if given == tuple(info.shape for info in infos)]
    holding = [n for n, infos in enumerate(variants) if _holds(infos, given)] if pad else []
    found = exact or sorted(holding, key=lambda n: sum(prod(info.shape) for info in variants[n]))
    if not found:
        raise InputError(_refusal(given, variants, pad))
    infos = variants[found[0]]
    padded = [_padded(value, info) for value, info in zip(values, infos, strict=True)]
    return FittingVariant(variant=found[0], values=padded, given=given)


def _holds(infos: Sequence[TensorInfo], given: Sequence[Shape]) -> bool:
    return all(_fits(shape, info.shape) for shape, info in zip(given, infos, strict=True))


def _fits(small: Shape, large: Shape) -> bool:
    return len(small) == len(large) and all(0 < a <= b for a, b in zip(small, large, strict=True))


def _padded(value: Array, info: TensorInfo) -> Array:
    """The value in the type and size of an input, zeros after its end."""
    typed = value.astype(info.dtype, copy=False)
    if tuple(value.shape) == info.shape:
        return typed
    return np.pad(typed, [(0, b - a) for a, b in zip(value.shape, info.shape, strict=True)])


def _refusal(given: Sequence[Shape], variants: Sequence[Sequence[TensorInfo]], pad: bool) -> str:
    """The first input that fits no variant, or all of them if each fits one but never together."""
    for place, shape in enumerate(given):
        name, shapes = variants[0][place].name, [infos[place].shape for infos in variants]
        if not any(_fits(shape, own) if pad else shape == own for own in shapes):
            if len(variants) == 1:
                return f"input {name!r} must have the shape {shapes[0]}, got {shape}"
            words = "fit into one of the shapes" if pad else "have one of the shapes"
            return f"input {name!r} must {words} {', '.join(map(str, dict.fromkeys(shapes)))}, got {shape}"
    sets = "; ".join(", ".join(f"{info.name} {info.shape}" for info in infos) for infos in variants)
    return f"the shapes of the inputs belong to different variants; the bundle takes: {sets}"
