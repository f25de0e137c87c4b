"""Sketches: the shapes of schedules a space generator offers, with their knobs."""

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from tuneloom.compiler.lazy import s_tir
from tuneloom.tuners.tvm.lowering.payloads import trace_text
from tuneloom.tuners.tvm.search.knobs import ChoiceKnob, Decision, Knob, TileKnob

_INLINE_OR_ROOT = 2  # compute locations count from -2 (inline), -1 (root)
_MOST_LOCATIONS = 24
_HUGE = 1 << 30


@dataclass(frozen=True, slots=True, kw_only=True)
class Sketch:
    """A trace with its sampling decisions left open.

    `kinds` has one entry an instruction, with its operands: sketches that differ in
    nothing but the order of loops are different sketches.
    """

    trace: Any = field(repr=False, compare=False)
    kinds: tuple[str, ...]
    knobs: tuple[Knob, ...]

    def replay(self, module: Any, decisions: Sequence[Decision], postprocs: Sequence[Any]) -> Any | None:
        """The schedule with these decisions, or None if it does not survive the postprocessors."""
        instructions = self.trace.insts
        sampling = [inst for inst in instructions if inst.kind.name.startswith("Sample")]
        values = [list(value) if isinstance(value, tuple) else value for value in decisions]
        trace = s_tir.Trace(instructions, dict(zip(sampling, values, strict=True)))
        schedule = s_tir.Schedule(module, debug_mask="none", error_render_level="none")
        try:
            trace.apply_to_schedule(schedule, remove_postproc=True)
            schedule.enter_postproc()
            return schedule if all(p.apply(schedule) for p in postprocs) else None
        except Exception:  # the decisions contradict each other: not a schedule
            return None


def sketch_of(trace: Any) -> Sketch:
    """Read the knobs off a trace."""
    decisions = trace.decisions
    sampling = [inst for inst in trace.insts if inst.kind.name.startswith("Sample")]
    return Sketch(
        trace=trace,
        kinds=decisions_in(trace_text(trace))[0],
        knobs=tuple(_knob(inst, decisions.get(inst)) for inst in sampling),
    )


def _knob(instruction: Any, decision: Any) -> Knob:
    name = instruction.kind.name
    if name in ("SamplePerfectTile", "SamplePartitionedTile"):
        factors = [int(factor) for factor in decision]
        extent = 1
        for factor in factors:
            extent *= factor
        bound = int(instruction.attrs[1]) if name == "SamplePerfectTile" else _HUGE
        return TileKnob(extent, len(factors), bound if bound > 0 else _HUGE)
    if name == "SampleCategorical":
        return ChoiceKnob(tuple(range(len(instruction.attrs[0]))))
    return ChoiceKnob(tuple(range(-_INLINE_OR_ROOT, _MOST_LOCATIONS)))


def decisions_in(text: str) -> tuple[tuple[str, ...], list[Decision]]:
    """The instructions (without postprocessing) and decisions in a trace as JSON text.

    An instruction is told by its kind and its operands. Raises ValueError for text that
    is no trace.
    """
    try:
        instructions, decided = json.loads(text)
        kinds = [str(instruction[0]) for instruction in instructions]
        told = [
            f"{kind}({','.join(map(str, inst[1]))})" for kind, inst in zip(kinds, instructions, strict=True)
        ]
        values = {int(index): value for index, value in decided}
    except (ValueError, TypeError, IndexError, KeyError) as error:
        raise ValueError(f"not a trace: {text[:60]!r}") from error
    end = kinds.index("EnterPostproc") if "EnterPostproc" in kinds else len(kinds)
    sampling = [i for i in range(end) if kinds[i].startswith("Sample")]
    return tuple(told[:end]), [_plain(values[i]) for i in sampling if i in values]


def key_of(text: str) -> str:
    """A short name for a configuration: the same decisions of the same sketch give the same key."""
    kinds, decisions = decisions_in(text)
    return hashlib.sha256(json.dumps([kinds, decisions]).encode()).hexdigest()[:20]


def _plain(value: Any) -> Decision:
    return tuple(int(v) for v in value) if isinstance(value, list) else int(value)
