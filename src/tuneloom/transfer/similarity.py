"""How alike two tasks are, between 0 and 1: the published measure and ours, side by side."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

from tuneloom.model import KnobDomain, SketchSpace, TaskSpace, TileDomain
from tuneloom.transfer.classes import same_anchor
from tuneloom.transfer.fitting import divisors
from tuneloom.transfer.forms import Form, form_of, likeness


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelProfile:
    """A task as similarity sees it; `importance` is what it costs the model."""

    key: str
    kernel_class: str
    space: TaskSpace
    importance: float = 1.0


Similarity = Callable[[KernelProfile, KernelProfile], float]


def jaccard(one: KernelProfile, other: KernelProfile) -> float:
    """As published: the product over the knobs of the share of values that both have.

    0 if the operators or the knobs differ. The outermost factor of a split is left free,
    so that loops of different extents still have values in common.
    """
    if one.kernel_class != other.kernel_class:
        return 0.0
    return max((_overlap(a, b) for a in one.space.sketches for b in other.space.sketches), default=0.0)


def same_sketch(one: KernelProfile, other: KernelProfile) -> float:
    """Ours: the anchors' sketches have to be alike; then the nearer the shapes the better."""
    if not same_anchor(one.kernel_class, other.kernel_class):
        return 0.0
    return max((_nearness(a, b) for a in one.space.sketches for b in other.space.sketches), default=0.0)


def _overlap(one: SketchSpace, other: SketchSpace) -> float:
    a, b = form_of(one.trace), form_of(other.trace)
    if not isinstance(a, Form) or not isinstance(b, Form) or a.kinds != b.kinds or a.sampled != b.sampled:
        return 0.0
    return math.prod(shared_values(x, y) for x, y in zip(one.knobs, other.knobs, strict=True))


def _nearness(one: SketchSpace, other: SketchSpace) -> float:
    a, b = form_of(one.trace), form_of(other.trace)
    if not isinstance(a, Form) or not isinstance(b, Form) or not likeness(a, b):
        return 0.0
    return likeness(a, b) / (1 + knob_distance(one.knobs, other.knobs))


def knob_distance(one: tuple[KnobDomain, ...], other: tuple[KnobDomain, ...]) -> float:
    """How far apart two shapes are: doublings of extents, and inner factors that only one allows."""
    tiles = [(a, b) for a, b in zip(one, other, strict=True) if isinstance(a, TileDomain)]
    steps = [
        abs(math.log2(a.extent / b.extent)) / 2 + 1 - shared_values(a, b)
        for a, b in tiles
        if isinstance(b, TileDomain) and a != b
    ]
    return sum(steps) / max(len(tiles), 1)


def shared_values(one: KnobDomain, other: KnobDomain) -> float:
    """The values both knobs have among those either has, a split's outermost factor left free."""
    if isinstance(one, TileDomain) and isinstance(other, TileDomain):
        if one.parts != other.parts:
            return 0.0
        bound = min(one.innermost_max, other.innermost_max)
        both = splits(math.gcd(one.extent, other.extent), one.parts, bound)
        either = splits(one.extent, one.parts, one.innermost_max)
        either += splits(other.extent, other.parts, other.innermost_max) - both
        return both / either
    if isinstance(one, TileDomain) or isinstance(other, TileDomain):
        return 0.0
    low, high = max(one.low, other.low), min(one.low + one.count, other.low + other.count)
    both = max(0, high - low)
    return both / (one.count + other.count - both)


@cache
def splits(extent: int, parts: int, innermost_max: int) -> int:
    """How many ways there are to split a loop; counted, not listed."""
    if parts == 1:
        return 1
    inner = [each for each in divisors(extent) if each <= innermost_max]
    return sum(_ordered_products(extent // each, parts - 1) for each in inner)


@cache
def _ordered_products(number: int, parts: int) -> int:
    if parts == 1:
        return 1
    return sum(_ordered_products(number // each, parts - 1) for each in divisors(number))


SIMILARITIES: dict[str, Similarity] = {"jaccard": jaccard, "sketch": same_sketch}
"""Measures by name; add your own function here."""
