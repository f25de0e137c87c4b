"""Kernels to tune, the stages they go through, and what becomes of candidates."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from statistics import median

from tuneloom.model.pickling import quickly_pickled
from tuneloom.model.reasons import ProposalReason


class StageKind(StrEnum):
    """What a stage does; select, build, profile and update repeat."""

    INITIALISE = "initialise"
    SELECT = "select"
    BUILD = "build"
    PROFILE = "profile"
    UPDATE = "update"
    FINALISE = "finalise"


ROUND = (StageKind.SELECT, StageKind.BUILD, StageKind.PROFILE, StageKind.UPDATE)
"""One round of a task, in order."""


@quickly_pickled
@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """One kernel of a model, with how often the model runs it.

    `key` names the workload on its target and is the same in every model and
    process; `payload` is opaque to all but the task's tuner.
    """

    key: str
    name: str
    weight: int = 1
    gflop: float = 0.0
    shapes: str = ""
    kernel_class: str = ""
    payload: bytes = field(default=b"", repr=False, compare=False)

    def __post_init__(self) -> None:
        if self.weight < 1:
            raise ValueError(f"task {self.name!r} needs a weight of at least 1, got {self.weight}")


class FailureKind(StrEnum):
    """Why a trial ended without a measurement."""

    BUILD_ERROR = "build_error"
    BUILD_TIMEOUT = "build_timeout"
    RUN_ERROR = "run_error"
    RUN_TIMEOUT = "run_timeout"
    WRONG_RESULT = "wrong_result"
    WORKER_LOST = "worker_lost"


@quickly_pickled
@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """A configuration proposed for measuring.

    `key` identifies the configuration within its task; `configuration` is what is
    kept for ever (text: a trace or knobs as JSON); `payload` is what a build worker
    needs and is never stored; `origin` says who proposed it, `reason` why, if the search tells.
    """

    key: str
    configuration: str
    payload: bytes = field(default=b"", repr=False, compare=False)
    origin: str = "search"
    reason: ProposalReason | None = field(default=None, repr=False, compare=False)


@quickly_pickled
@dataclass(frozen=True, slots=True, kw_only=True)
class Artifact:
    """A built candidate as bytes, with what the compiler revealed about it."""

    payload: bytes = field(repr=False)
    features: dict[str, float] = field(default_factory=dict)
    build_s: float = 0.0


@quickly_pickled
@dataclass(frozen=True, slots=True, kw_only=True)
class Measurement:
    """Repeated timings of one candidate, in seconds per run.

    `counters` are what its device told beside the time, by name: what it counted in one run, or how it stood,
    such as its clock and its temperature.
    """

    seconds: tuple[float, ...]
    profile_s: float = 0.0
    counters: Mapping[str, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not self.seconds or min(self.seconds) <= 0:
            raise ValueError(f"a measurement needs positive times, got {self.seconds}")

    @property
    def best_s(self) -> float:
        """The least disturbed repeat."""
        return min(self.seconds)

    @property
    def median_s(self) -> float:
        """The middle repeat."""
        return median(self.seconds)


@quickly_pickled
@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """A trial that ended without a measurement; `message` is for people.

    `spoils_worker` says that the process which found out should serve nobody else; it
    is not kept.
    """

    kind: FailureKind
    message: str = ""
    spoils_worker: bool = field(default=False, compare=False, repr=False)


Outcome = Measurement | Failure


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """One candidate through build and profile."""

    candidate: Candidate
    outcome: Outcome

    @property
    def seconds(self) -> float | None:
        """The time that ranks the trial, or None for a failure."""
        return self.outcome.best_s if isinstance(self.outcome, Measurement) else None

    @property
    def built(self) -> bool:
        """Whether it got as far as the device."""
        failed = self.outcome.kind if isinstance(self.outcome, Failure) else None
        return failed not in (FailureKind.BUILD_ERROR, FailureKind.BUILD_TIMEOUT)

    @property
    def lost(self) -> bool:
        """Whether its worker was lost, which says nothing about the candidate."""
        return isinstance(self.outcome, Failure) and self.outcome.kind is FailureKind.WORKER_LOST
