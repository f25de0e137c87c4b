"""Where an element of a tensor lies, as text over the loop variables of a kernel.

A coordinate is written in digits of loop variables, the highest first: reshaping regroups
digits, transposing reorders coordinates, broadcasting drops them. What remains of a chain
of such steps is one offset, and neighbouring digits of a variable join again in it.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import prod


@dataclass(frozen=True, slots=True)
class Variable:
    """A loop variable of a kernel: its name, its extent, and the name of the mask of its valid values."""

    name: str
    extent: int
    mask: str = ""

    def whole(self) -> "Coordinate":
        """The variable itself as a coordinate; one that is always 0 counts only if it has a mask."""
        return Coordinate((Digit(self, 1, self.extent),)) if self.extent > 1 or self.mask else Coordinate()


@dataclass(frozen=True, slots=True)
class Digit:
    """`variable // divisor % extent`."""

    variable: Variable
    divisor: int
    extent: int

    @property
    def text(self) -> str:
        """The digit as an expression."""
        text = self.variable.name
        if self.divisor > 1:
            text = f"({text} // {self.divisor})"
        return f"({text} % {self.extent})" if self.divisor * self.extent < self.variable.extent else text


@dataclass(frozen=True, slots=True)
class Coordinate:
    """`shift + scale * (number with these digits)`; without digits it is constant."""

    digits: tuple[Digit, ...] = ()
    scale: int = 1
    shift: int = 0


Place = tuple[Coordinate, ...]


def regrouped(place: Place, shape: Sequence[int]) -> Place | None:
    """The same element after reshaping to `shape`; None if the digits don't fall into these groups."""
    if any(each.scale != 1 or each.shift for each in place):
        return None
    digits = [digit for each in place for digit in each.digits]
    left = [digit for digit in digits if digit.extent > 1]
    groups: list[Coordinate] = []
    for extent in reversed(shape):
        taken = _taken(left, extent)
        if taken is None:
            return None
        groups.append(Coordinate(taken))
    if left:
        return None
    zeros = tuple(digit for digit in digits if digit.extent == 1)
    first, *others = (*reversed(groups), Coordinate())
    return (Coordinate((*zeros, *first.digits)), *others)[: len(shape)]


def reshaped(place: Place, before: Sequence[int], after: Sequence[int]) -> Place | None:
    """An element of a tensor of shape `before` in the same tensor of shape `after`, also of a slice of it."""
    result: list[Coordinate] = []
    for old, new in _blocks(before, after):
        part, extents = place[old], before[old]
        if all(_is_whole(*pair) for pair in zip(part, extents, strict=True)):
            found = regrouped(part, after[new])
        else:
            found = _merged(part, extents, after[new])
        if found is None:
            return None
        result += found
    return tuple(result)


def _blocks(before: Sequence[int], after: Sequence[int]) -> Iterator[tuple[slice, slice]]:
    """The shortest stretches of axes on both sides that have as many elements."""
    i = j = 0
    while i < len(before) or j < len(after):
        first = i, j
        i, j = min(i + 1, len(before)), min(j + 1, len(after))
        while (old := prod(before[first[0] : i])) != (new := prod(after[first[1] : j])):
            i, j = (i + 1, j) if old < new else (i, j + 1)
        yield slice(first[0], i), slice(first[1], j)


def _is_whole(coordinate: Coordinate, extent: int) -> bool:
    return _spans(coordinate, extent) and not coordinate.shift


def _spans(coordinate: Coordinate, extent: int) -> bool:
    """Whether it counts through as many elements as its axis has, from wherever it starts."""
    return prod(digit.extent for digit in coordinate.digits) == extent and coordinate.scale == 1


def _merged(part: Place, extents: Sequence[int], shape: Sequence[int]) -> Place | None:
    """Axes that become one, where all below the last sliced one are spanned; None for anything else."""
    sliced = [axis for axis, pair in enumerate(zip(part, extents, strict=True)) if not _spans(*pair)]
    last = sliced[-1] if sliced else 0
    below = prod(extents[last + 1 :])
    moving = [digit for each in part[:last] for digit in each.digits if digit.extent > 1]
    if sum(extent > 1 for extent in shape) > 1 or moving or (below > 1 and part[last].scale != 1):
        return None
    digits = tuple(digit for each in part for digit in each.digits)
    shift = sum(each.shift * prod(extents[axis + 1 :]) for axis, each in enumerate(part))
    joined = Coordinate(digits, part[last].scale, shift)
    at = next((axis for axis, extent in enumerate(shape) if extent > 1), 0)
    return tuple(joined if axis == at else Coordinate() for axis in range(len(shape)))


def _taken(left: list[Digit], extent: int) -> tuple[Digit, ...] | None:
    """Take the lowest digits that make up `extent` off a list, splitting the last of them if needed."""
    taken: list[Digit] = []
    while extent > 1:
        if not left:
            return None
        digit = left.pop()
        if extent % digit.extent == 0:
            taken.append(digit)
            extent //= digit.extent
        elif digit.extent % extent == 0:
            left.append(Digit(digit.variable, digit.divisor * extent, digit.extent // extent))
            taken.append(Digit(digit.variable, digit.divisor, extent))
            extent = 1
        else:
            return None
    return tuple(reversed(taken))


def offset(place: Place, shape: Sequence[int]) -> str:
    """The offset of an element in a dense tensor of this shape, in elements."""
    terms, constant = strides(place, shape)
    texts = [times(digit.text, step) for digit, step in terms]
    return " + ".join([*texts, *([str(constant)] if constant or not texts else [])])


def strides(place: Place, shape: Sequence[int]) -> tuple[list[tuple[Digit, int]], int]:
    """The same as digits with their strides, and what is constant."""
    terms: list[tuple[Digit, int]] = []
    constant = 0
    for axis, each in enumerate(place):
        stride = prod(shape[axis + 1 :])
        constant += each.shift * stride
        step = stride * each.scale
        for digit in reversed(each.digits):
            terms.append((digit, step))
            step *= digit.extent
    return _joined(terms), constant


def _joined(terms: list[tuple[Digit, int]]) -> list[tuple[Digit, int]]:
    """Terms in which neighbouring digits with fitting strides have become one."""
    result: list[tuple[Digit, int]] = []
    for digit, step in sorted(terms, key=lambda term: (term[0].variable.name, term[0].divisor)):
        if result:
            low, low_step = result[-1]
            follows = low.variable == digit.variable and low.divisor * low.extent == digit.divisor
            if follows and step == low_step * low.extent:
                result[-1] = (Digit(low.variable, low.divisor, low.extent * digit.extent), low_step)
                continue
        result.append((digit, step))
    return result


def text_of(coordinate: Coordinate) -> str:
    """A coordinate as an expression."""
    terms, factor = [], coordinate.scale
    for digit in reversed(coordinate.digits):
        terms.append(times(digit.text, factor))
        factor *= digit.extent
    constant = [str(coordinate.shift)] if coordinate.shift or not terms else []
    return "(" + " + ".join([*terms, *constant]) + ")"


def times(text: str, factor: int) -> str:
    """A text times a constant."""
    return text if factor == 1 else f"{text} * {factor}"


def masks(place: Place) -> tuple[str, ...]:
    """The masks of all variables that a place depends on."""
    names = (digit.variable.mask for each in place for digit in each.digits)
    return tuple(dict.fromkeys(name for name in names if name))
