"""What `kernel replay --explain` prints: choices with their reasons, and where a search was stuck."""

from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from tuneloom.model import stalls

if TYPE_CHECKING:
    from tuneloom.tuners.replay.recording import Recording
    from tuneloom.tuners.replay.study import ReplayedTrial

_MEMBER = 26
_COLUMNS = (
    f"{'trial':>6}{'why':>{_MEMBER + 2}}{'expected ms':>20}{'promise':>9}{'risk':>6}{'ms':>11}{'best':>8}"
    "  configuration"
)


def explanation(recording: "Recording", steps: "Sequence[ReplayedTrial]") -> Iterator[str]:
    """Lines: a table of trials, then the stretches in which the best stood."""
    yield _COLUMNS
    best_ms = float("inf")
    for number, step in enumerate(steps, 1):
        best_ms = min(best_ms, step.seconds * 1e3 if step.seconds is not None else best_ms)
        yield _row(recording, number, step, best_ms)
    for stall in stalls(steps):
        yield (
            f"stuck: trials {stall.first} to {stall.last} at {stall.best_s * 1e3:.6g} ms "
            f"({stall.best_s * 1e3 / recording.best_ms:.3f} of the optimum); "
            f"promised {stall.promised:.1%} in all, {stall.failed} failed"
        )


def explained_json(recording: "Recording", steps: "Sequence[ReplayedTrial]") -> dict[str, Any]:
    """The same as data."""
    rows = [{**asdict(step), "point": recording.space.configuration(step.point)} for step in steps]
    return {"trials": rows, "stuck": [asdict(stall) for stall in stalls(steps)]}


def _row(recording: "Recording", number: int, step: "ReplayedTrial", best_ms: float) -> str:
    knobs = ", ".join(f"{name}={value}" for name, value in recording.space.configuration(step.point).items())
    time = "failed" if step.seconds is None else f"{step.seconds * 1e3:.5g}"
    relative = f"{best_ms / recording.best_ms:.3f}" if best_ms < float("inf") else "-"
    return f"{number:>6}{_reason(step)}{time:>11}{relative:>8}  {knobs}"


def _reason(step: "ReplayedTrial") -> str:
    reason = step.reason
    if reason is None:
        return f"{'-':>{_MEMBER + 2}}{'-':>20}{'-':>9}{'-':>6}"
    expected, promise, risk = "-", "-", "-"
    if reason.expected_s is not None and reason.error is not None:
        expected = f"{reason.expected_s * 1e3:.5g} ± {reason.error:.1%}"
    if reason.promise is not None:
        promise = f"{reason.promise:.1%}"
    if reason.risk is not None:
        risk = f"{reason.risk:.0%}"
    return f"{reason.member:>{_MEMBER + 2}}{expected:>20}{promise:>9}{risk:>6}"
