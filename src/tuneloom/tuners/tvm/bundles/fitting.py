"""Which of a bundle's shapes fits some values, and how smaller ones are padded to it."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np

from tuneloom.errors import InputError
from tuneloom.model import TensorInfo
from tuneloom.tuners.tvm.models.compiling.running import Array
from tuneloom.tuners.tvm.runner.padding import cut, fits, padded_to

Shape = tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class FittingVariant:
    """The variant to run, and the values as it takes them; `given` are their shapes before padding."""

    variant: int
    values: list[Array]
    given: tuple[Shape, ...]

    def cut(self, outputs: Sequence[Array]) -> list[Array]:
        """Outputs without what padding added."""
        return [cut(output, self.given, [value.shape for value in self.values]) for output in outputs]


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
    padded = [padded_to(value, info.shape, info.dtype) for value, info in zip(values, infos, strict=True)]
    return FittingVariant(variant=found[0], values=padded, given=given)


def _holds(infos: Sequence[TensorInfo], given: Sequence[Shape]) -> bool:
    return all(fits(shape, info.shape) for shape, info in zip(given, infos, strict=True))


def _refusal(given: Sequence[Shape], variants: Sequence[Sequence[TensorInfo]], pad: bool) -> str:
    """The first input that fits no variant, or all of them if each fits one but never together."""
    for place, shape in enumerate(given):
        name, shapes = variants[0][place].name, [infos[place].shape for infos in variants]
        if not any(fits(shape, own) if pad else shape == own for own in shapes):
            if len(variants) == 1:
                return f"input {name!r} must have the shape {shapes[0]}, got {shape}"
            words = "fit into one of the shapes" if pad else "have one of the shapes"
            return f"input {name!r} must {words} {', '.join(map(str, dict.fromkeys(shapes)))}, got {shape}"
    sets = "; ".join(", ".join(f"{info.name} {info.shape}" for info in infos) for infos in variants)
    return f"the shapes of the inputs belong to different variants; the bundle takes: {sets}"
