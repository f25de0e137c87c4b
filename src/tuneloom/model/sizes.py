"""Dimensions that vary: ranges of sizes, and what a bundle knows of the one that varies."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tuneloom.errors import InputError

_RANGE = re.compile(r"([0-9]{1,9})\.\.([0-9]{1,9})")
MOST_SIZES = 8192
"""How many sizes one range may have."""

Ranges = Mapping[str, tuple[tuple[int, int], ...]]
"""For inputs of which a dimension varies: the least and the greatest size of each dimension."""


def range_in(text: Any) -> tuple[int, int] | None:
    """The least and the greatest size that a text such as `1..64` names; None for anything else."""
    found = _RANGE.fullmatch(text) if isinstance(text, str) else None
    low, high = map(int, found.groups()) if found else (0, 0)
    return (low, high) if 1 <= low < high else None


def range_of(ranges: Ranges) -> tuple[int, int]:
    """The one range that all of these have; raises InputError where there are two, or too many sizes."""
    found = {pair for pairs in ranges.values() for pair in pairs if pair[0] < pair[1]}
    if len(found) > 1:
        words = " and ".join(f"{low}..{high}" for low, high in sorted(found))
        raise InputError(
            f"only one dimension may vary, got {words}; give the others one size", field="shapes"
        )
    ((low, high),) = found
    if high - low >= MOST_SIZES:
        raise InputError(
            f"{low}..{high} has {high - low + 1} sizes; a range may have {MOST_SIZES}", field="shapes"
        )
    return low, high


@dataclass(frozen=True, slots=True, kw_only=True)
class VaryingSizes:
    """A dimension that varies between two sizes, and how sizes without a program of their own run.

    `inputs` has the axes of each input that vary, `outputs` those of each output, each with the factor
    between its size and the dimension's. `programs` are the sizes that programs are made for. If `pads`,
    zeros after the end of the inputs change nothing but the end of the outputs; if `splits`, a run may be
    divided into several of smaller sizes.
    """

    low: int
    high: int
    inputs: Mapping[str, tuple[int, ...]]
    outputs: Mapping[str, tuple[tuple[int, int], ...]]
    programs: tuple[int, ...]
    pads: bool
    splits: bool

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> "VaryingSizes":
        """From what JSON makes of its fields."""
        inputs = {name: tuple(axes) for name, axes in data["inputs"].items()}
        outputs = {name: tuple((a, f) for a, f in axes) for name, axes in data["outputs"].items()}
        programs = tuple(data["programs"])
        return cls(**{**data, "inputs": inputs, "outputs": outputs, "programs": programs})
