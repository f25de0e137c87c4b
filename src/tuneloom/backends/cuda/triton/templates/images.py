"""Shapes of convolutions and pools by the letters of their layouts; a missing dimension has extent 1."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

from tuneloom.backends.cuda.triton.claims import Unfit
from tuneloom.backends.cuda.triton.coordinates import Coordinate, Place, Variable, regrouped
from tuneloom.backends.meaning import MeaningStep


@dataclass(frozen=True, slots=True)
class Layout:
    """A tensor's axes by letter; an axis that is not there has extent 1 and stride 0."""

    letters: str
    shape: tuple[int, ...]

    def extent(self, letter: str) -> int:
        """The extent of an axis."""
        return self.shape[self.letters.index(letter)] if letter in self.letters else 1

    def stride(self, letter: str) -> int:
        """How many elements apart neighbours along an axis are."""
        return prod(self.shape[self.letters.index(letter) + 1 :]) if letter in self.letters else 0


@dataclass(frozen=True, slots=True)
class SlidingWindow:
    """How a window moves over an image: pairs for rows and columns."""

    size: tuple[int, int]
    strides: tuple[int, int]
    dilation: tuple[int, int]
    before: tuple[int, int]

    @classmethod
    def of(cls, step: MeaningStep, size: tuple[int, int]) -> "SlidingWindow":
        """The window of a convolution or pool; a single dimension is that of columns."""
        attributes = step.attributes
        padding = list(attributes["padding"])
        before = padding[: len(padding) // 2] if len(padding) > 1 else padding
        return cls(
            size,
            _pair(attributes["strides"], 1),
            _pair(attributes.get("dilation", (1,)), 1),
            _pair(before, 0) if len(attributes["strides"]) == 1 else (before[0], before[-1]),
        )

    def stays_inside(self, image: Layout, result: Layout) -> bool:
        """Whether it never leaves the image."""
        return all(
            before == 0 and (result.extent(letter) - 1) * stride + (size - 1) * gap < image.extent(letter)
            for letter, size, stride, gap, before in zip(
                "HW", self.size, self.strides, self.dilation, self.before, strict=True
            )
        )


def _pair(values: Sequence[int], missing: int) -> tuple[int, int]:
    return (missing, values[0]) if len(values) == 1 else (values[0], values[1])


def pixels(pixel: Variable, result: Layout) -> Place:
    """Batch, row and column of an output's pixel."""
    place = regrouped((pixel.whole(),), [result.extent(letter) for letter in "NHW"])
    if place is None:
        raise Unfit("pixels that can't be taken apart")
    return place


def result_place(pixel: Variable, channel: Coordinate, result: Layout) -> Place:
    """The place of a pixel's channel in the output."""
    parts = dict(zip("NHW", pixels(pixel, result), strict=True)) | {"C": channel}
    return tuple(parts[letter] for letter in result.letters)
