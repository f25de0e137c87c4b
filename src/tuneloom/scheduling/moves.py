"""The states of a job and every legal move between them."""

from collections.abc import Mapping
from enum import StrEnum

from tuneloom.errors import SchedulingError


class JobState(StrEnum):
    """Where a job stands; the last three are ends."""

    WAITING = "waiting"
    RUNNING = "running"
    PAUSING = "pausing"
    PAUSED = "paused"
    FINISHING = "finishing"
    FINISHED = "finished"
    CANCELLED = "cancelled"
    REFUSED = "refused"


ENDS = (JobState.FINISHED, JobState.CANCELLED, JobState.REFUSED)

_W, _R, _P, _Z, _F = (
    JobState.WAITING,
    JobState.RUNNING,
    JobState.PAUSING,
    JobState.PAUSED,
    JobState.FINISHING,
)
JOB_WAITING, JOB_RUNNING, JOB_FINISHING = _W, _R, _F
"""The states that are asked for with every event: to look a member up in its class takes far longer."""

MOVES: Mapping[tuple[JobState | None, JobState], str] = {
    (None, _W): "submitted",
    (None, JobState.REFUSED): "no resource fits",
    (_W, _R): "first stage started",
    (_R, _W): "last running stage ended",
    (_W, _Z): "paused",
    (_R, _P): "paused",
    (_P, _Z): "last running stage ended",
    (_P, _R): "resumed",
    (_Z, _W): "resumed",
    (_R, _F): "done, others still run",
    (_P, _F): "done, others still run",
    (_W, JobState.FINISHED): "nothing to do",
    (_R, JobState.FINISHED): "done",
    (_P, JobState.FINISHED): "done",
    (_F, JobState.FINISHED): "last running stage ended",
    (_W, JobState.CANCELLED): "cancelled",
    (_R, JobState.CANCELLED): "cancelled",
    (_P, JobState.CANCELLED): "cancelled",
    (_Z, JobState.CANCELLED): "cancelled",
    (_F, JobState.CANCELLED): "cancelled",
}
"""Each legal move with the reason shown in docs/states.md; `None` is before submission."""


LEGAL = frozenset((old._value_, new._value_) for old, new in MOVES if old is not None)
"""The moves of jobs that are here, as texts: an enum hashes slowly, and this is asked twice an event."""


def require_move(job: str, old: JobState, new: JobState) -> None:
    """Raise SchedulingError unless the table allows this move."""
    if (old._value_, new._value_) not in LEGAL:
        raise SchedulingError(f"job {job!r} can't move from {old} to {new}")
