"""Decisions fitted to another shape.

Inner factors say how a kernel uses registers and caches, so they are kept as near as
the new extent allows; the outermost factor takes the rest.
"""

import math
from collections.abc import Callable, Sequence
from functools import cache

from tuneloom.model import ChoiceDomain, Decision, KnobDomain, TileDomain
from tuneloom.transfer.forms import DoesNotFit

TileFit = Callable[[tuple[int, ...], TileDomain], tuple[int, ...] | DoesNotFit]


def fit_decisions(
    decisions: Sequence[Decision], knobs: Sequence[KnobDomain], variant: str
) -> tuple[Decision, ...] | DoesNotFit:
    """The decisions for these knobs that are nearest in spirit, or why there are none."""
    if len(decisions) != len(knobs):
        return DoesNotFit(f"{len(decisions)} decisions for {len(knobs)} knobs")
    fitted: list[Decision] = []
    for decision, knob in zip(decisions, knobs, strict=True):
        one = _fit_one(decision, knob, VARIANTS[variant])
        if isinstance(one, DoesNotFit):
            return one
        fitted.append(one)
    return tuple(fitted)


def _fit_one(decision: Decision, knob: KnobDomain, fit: TileFit) -> Decision | DoesNotFit:
    if isinstance(knob, ChoiceDomain):
        if not isinstance(decision, int):
            return DoesNotFit(f"a split {decision} where a choice is wanted")
        return min(max(decision, knob.low), knob.low + knob.count - 1)
    if isinstance(decision, int) or len(decision) != knob.parts:
        return DoesNotFit(f"{decision} for a split into {knob.parts}")
    return fit(decision, knob)


def copied(factors: tuple[int, ...], knob: TileDomain) -> tuple[int, ...] | DoesNotFit:
    """The same inner factors; does not fit where they don't divide the extent."""
    inner = math.prod(factors[1:])
    if knob.extent % inner or (factors[1:] and factors[-1] > knob.innermost_max):
        return DoesNotFit(f"{factors[1:]} does not divide {knob.extent}")
    return (knob.extent // inner, *factors[1:])


def nearest(factors: tuple[int, ...], knob: TileDomain) -> tuple[int, ...] | DoesNotFit:
    """Every inner factor, from the innermost outwards, as the nearest divisor of what is left."""
    return _from_inside(factors[1:], knob)


def scaled(factors: tuple[int, ...], knob: TileDomain) -> tuple[int, ...] | DoesNotFit:
    """As `nearest`, with all factors grown or shrunk alike to the new extent."""
    ratio = (knob.extent / math.prod(factors)) ** (1 / knob.parts)
    return _from_inside([factor * ratio for factor in factors[1:]], knob)


def _from_inside(wanted: Sequence[float], knob: TileDomain) -> tuple[int, ...]:
    left, found = knob.extent, []
    most = knob.innermost_max
    for value in reversed(wanted):
        found.append(nearest_divisor(left, value, most))
        left //= found[-1]
        most = knob.extent
    return (left, *reversed(found))


def nearest_divisor(number: int, wanted: float, most: int) -> int:
    """The divisor with the smallest ratio to what is wanted; of two, the smaller."""
    near = [divisor for divisor in divisors(number) if divisor <= most]
    return min(near, key=lambda divisor: (abs(math.log(divisor / max(wanted, 1e-9))), divisor))


@cache
def divisors(number: int) -> tuple[int, ...]:
    """All divisors, ascending."""
    low = [each for each in range(1, math.isqrt(number) + 1) if number % each == 0]
    return tuple(sorted({*low, *(number // each for each in low)}))


VARIANTS: dict[str, TileFit] = {"copy": copied, "nearest": nearest, "scaled": scaled}
"""Ways to fit a split, the most faithful first."""

__all__ = ["VARIANTS", "DoesNotFit", "copied", "divisors", "fit_decisions", "nearest", "scaled"]
