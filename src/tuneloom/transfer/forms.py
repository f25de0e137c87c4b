"""The form of a schedule: a trace read as data, with its names and its inlining left out.

Two kernels whose anchors do the same work get traces that differ in what is inlined
around them and in how variables are numbered. In a form every operand is told by who
produced it, so that equal work has equal forms.
"""

import json
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from tuneloom.model import Decision

_AROUND = frozenset(
    [
        "GetSBlock",
        "GetBlock",
        "ComputeInline",
        "ReverseComputeInline",
        "SetScope",
        "CacheWrite",
        "CacheRead",
        "Annotate",
    ]
)
_END = "EnterPostproc"


@dataclass(frozen=True, slots=True)
class DoesNotFit:
    """Why a schedule can't be used for a task; a value, never raised."""

    reason: str


@dataclass(frozen=True, slots=True)
class Form:
    """Instructions with operands, the shape of every sampling instruction, and the decisions made."""

    steps: tuple[str, ...]
    kinds: tuple[str, ...]
    sampled: tuple[str, ...]
    decisions: tuple[Decision, ...]


@lru_cache(maxsize=8192)
def form_of(trace: str) -> Form | DoesNotFit:
    """Read a trace as JSON text; anything else does not fit."""
    try:
        instructions, decided = json.loads(trace)
        return _form([list(each) for each in instructions], {int(at): value for at, value in decided})
    except (ValueError, TypeError, IndexError, KeyError, AttributeError):
        return DoesNotFit("not a trace")


def _form(instructions: list[list[Any]], decided: dict[int, Any]) -> Form | DoesNotFit:
    producers: dict[str, str] = {}
    steps: list[str] = []
    kinds: list[str] = []
    sampled: list[str] = []
    decisions: list[Decision] = []
    for at, (kind, operands, attributes, outputs) in enumerate(instructions):
        if kind == _END:
            break
        if kind.startswith("Sample"):
            if at not in decided:
                return DoesNotFit(f"instruction {at} has no decision")
            decisions.append(_plain(decided[at]))
            sampled.append(_sampling(kind, attributes))
        if kind not in _AROUND:
            kinds.append(kind)
            steps.append(f"{kind}({','.join(producers.get(str(each), str(each)) for each in operands)})")
        for number, output in enumerate(outputs):
            producers[str(output)] = "b" if kind in _AROUND else f"{len(steps)}.{number}"
    return Form(tuple(steps), tuple(kinds), tuple(sampled), tuple(decisions))


def _sampling(kind: str, attributes: list[Any]) -> str:
    """A sampling instruction by its kind and how many parts or choices it has."""
    if kind in ("SamplePerfectTile", "SamplePartitionedTile"):
        return f"{kind}/{int(attributes[0])}"
    return f"{kind}/{len(attributes[0])}" if kind == "SampleCategorical" else str(kind)


def _plain(value: Any) -> Decision:
    return tuple(int(each) for each in value) if isinstance(value, list) else int(value)


def likeness(one: Form, other: Form) -> float:
    """How alike two forms are: 1 for the same, less where loops, steps or only knobs agree; 0 for none."""
    if one.sampled != other.sampled:
        return 0.0
    if one.steps == other.steps:
        return 1.0
    same = sum(a == b for a, b in zip(one.steps, other.steps, strict=False))
    part = same / max(len(one.steps), len(other.steps), 1)
    return (0.7 if one.kinds == other.kinds else 0.4) + 0.25 * part
