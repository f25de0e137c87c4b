"""Whole traces fitted to another kernel, for schedules whose form its own space does not have.

A trace is data: it is parsed, its decisions are replaced while it is replayed, and the
postprocessors have the last word. Runs in a worker, since what is replayed may come from
anywhere.
"""

import json
from collections.abc import Iterator, Sequence
from typing import Any

from tuneloom.compiler.fast_import import load_intrinsics
from tuneloom.compiler.lazy import ms, s_tir, tvm
from tuneloom.model import TileDomain
from tuneloom.transfer.fitting import VARIANTS, DoesNotFit, TileFit

_HUGE = 1 << 30


def fit_traces(wanted: Sequence[tuple[bytes, str]]) -> list[list[str]]:
    """For pairs of a task's payload and a foreign trace, the different traces that fit that task."""
    found = []
    for payload, trace in wanted:
        kernel = _Receiver(payload)
        results = [kernel.fit(trace, variant) for variant in VARIANTS]
        texts = [text for text in results if isinstance(text, str)]
        found.append(list(dict.fromkeys(texts)))
    return found


def fit_trace(payload: bytes, trace: str, variant: str) -> str | DoesNotFit:
    """One foreign trace for the task with this payload, or why it does not fit."""
    return _Receiver(payload).fit(trace, variant)


class _Receiver:
    """A kernel that may be given a schedule."""

    def __init__(self, payload: bytes) -> None:
        content = json.loads(payload)
        self._module = tvm.ir.load_json(content["module"])
        target = json.loads(content["target"])
        load_intrinsics(str(target["kind"]))
        context = ms.TuneContext(
            mod=self._module,
            target=tvm.target.Target(target),
            space_generator="post-order-apply",
            search_strategy="replay-trace",
            num_threads=1,
            rand_state=1,
        )
        self._context = context  # the postprocessors belong to it
        self._postprocs = list(context.space_generator.postprocs)

    def fit(self, trace: str, variant: str) -> str | DoesNotFit:
        """Replay with fitted decisions; every way to fail is a reason."""
        schedule = s_tir.Schedule(self._module, debug_mask="none", error_render_level="none")
        refused: list[DoesNotFit] = []
        try:
            content = _until_postprocessing(json.loads(trace))
            parsed = _parsed(content, self._module)
            provider = _provider(schedule, VARIANTS[variant], _decisions(content), refused)
            parsed.apply_to_schedule(schedule, remove_postproc=True, decision_provider=provider)
            schedule.enter_postproc()
            accepted = all(postproc.apply(schedule) for postproc in self._postprocs)
        except Exception as error:  # a foreign trace may fail in any way
            return refused[0] if refused else DoesNotFit(_first_line(error))
        if refused:
            return refused[0]
        return _text(schedule.trace) if accepted else DoesNotFit("refused by a postprocessor")


def _parsed(content: Any, module: Any) -> Any:
    """The trace as TVM has it, made on a copy of the kernel that is thrown away.

    TVM refits splits in its own way while it does that, so the decisions in it are not
    the donor's.
    """
    scratch = s_tir.Schedule(module, debug_mask="none", error_render_level="none")
    s_tir.Trace.apply_json_to_schedule(content, scratch)
    return scratch.trace


def _until_postprocessing(trace: Any) -> Any:
    instructions, decisions = trace
    kinds = [instruction[0] for instruction in instructions]
    end = kinds.index("EnterPostproc") if "EnterPostproc" in kinds else len(kinds)
    return [instructions[:end], [pair for pair in decisions if pair[0] < end]]


def _decisions(content: Any) -> Iterator[Any]:
    """The donor's decisions, one for every sampling instruction in order."""
    instructions, decided = content
    values = {int(at): value for at, value in decided}
    return iter([values[at] for at, inst in enumerate(instructions) if inst[0].startswith("Sample")])


def _provider(schedule: Any, fit: TileFit, decisions: Iterator[Any], refused: list[DoesNotFit]) -> Any:
    """What TVM asks for the decision of every sampling instruction."""

    def decide(instruction: Any, inputs: Any, attributes: Any, decision: Any) -> Any:
        kind = str(instruction.kind.name)
        if not kind.startswith("Sample"):
            return decision
        decision = next(decisions)
        if kind == "SamplePerfectTile":
            extent = int(schedule.get(inputs[0]).extent)
            bound = int(attributes[1])
            knob = TileDomain(
                extent=extent, parts=int(attributes[0]), innermost_max=bound if bound > 0 else _HUGE
            )
            fitted = fit(tuple(int(factor) for factor in decision), knob)
            if isinstance(fitted, DoesNotFit):
                refused.append(fitted)
                return decision
            return list(fitted)
        if kind == "SampleCategorical":
            return min(int(decision), len(attributes[0]) - 1)
        return decision

    return decide


def _first_line(error: Exception) -> str:
    text = str(error).strip()
    if not text or text == "(not rendered)":
        return "its blocks or loops are not those of this kernel"
    return text.splitlines()[0][:200]


def _text(trace: Any) -> str:
    return json.dumps(_plain(trace.as_json()), separators=(",", ":"))


def _plain(value: Any) -> Any:
    if value is None or isinstance(value, (bool, float, str)):
        return str(value) if isinstance(value, str) else value
    if isinstance(value, int):
        return int(value)
    return [_plain(each) for each in value] if hasattr(value, "__iter__") else value.value
