"""How far apart the shapes of two kernels are, from their text alone."""

import math
import re
from collections.abc import Iterable
from functools import lru_cache

_NUMBER = re.compile(r"\d+")
_OTHER_RANK = 8.0


def shape_distance(one: str, other: str) -> float:
    """Doublings between two lists of shapes such as `1×64×56×56 → 1×64×28×28`; the result counts twice.

    A list of other ranks is far, but not infinitely: what is fused behind a kernel adds tensors.
    """
    a, b = _dimensions(one), _dimensions(other)
    last = _apart(a[-1], b[-1]) if a and b else _OTHER_RANK
    if len(a) != len(b):
        return _apart(a[0], b[0]) + 2 * last + 1.0 if a and b else _OTHER_RANK
    return sum(map(_apart, a, b)) + last


def nearest(shapes: str, others: Iterable[tuple[str, str]], count: int) -> list[str]:
    """Of pairs of a name and shapes, the names of the nearest, nearest first."""
    ranked = sorted(others, key=lambda pair: (shape_distance(shapes, pair[1]), pair[0]))
    return [name for name, _ in ranked[:count]]


@lru_cache(maxsize=16384)
def _dimensions(shapes: str) -> tuple[tuple[int, ...], ...]:
    tensors = shapes.replace("→", ",").split(",")
    return tuple(tuple(int(number) for number in _NUMBER.findall(tensor)) for tensor in tensors)


def _apart(one: tuple[int, ...], other: tuple[int, ...]) -> float:
    if len(one) != len(other):
        return _OTHER_RANK
    return sum(abs(math.log2(max(a, 1) / max(b, 1))) for a, b in zip(one, other, strict=True))
