"""What goes into the store and comes out of it, beyond the values of `tuneloom.model`."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from types import MappingProxyType
from typing import Any

from tuneloom.model import Measurement, Task, Trial
from tuneloom.scheduling.journal import EventRecord

Json = Any
"""A value that JSON can carry: None, bool, int, float, str, list, or dict with str keys."""

EMPTY: Mapping[str, Json] = MappingProxyType({})


class RunStatus(StrEnum):
    """How a run stands; a run whose executor is gone counts as interrupted.

    A waiting run was submitted and no executor has taken it yet.
    """

    WAITING = "waiting"
    RUNNING = "running"
    FINISHED = "finished"
    INTERRUPTED = "interrupted"
    FAILED = "failed"


class JobStatus(StrEnum):
    """How a job stands."""

    WAITING = "waiting"
    RUNNING = "running"
    PAUSED = "paused"
    FINISHED = "finished"
    CANCELLED = "cancelled"
    FAILED = "failed"

    @property
    def ended(self) -> bool:
        """Whether the job will not go on by itself."""
        return self in (JobStatus.FINISHED, JobStatus.CANCELLED, JobStatus.FAILED)


@dataclass(frozen=True, slots=True, kw_only=True)
class RunRecord:
    """One start of the program: a command with its options. Times are seconds since the epoch."""

    id: str
    created: float
    command: str
    options: Mapping[str, Json] = field(default_factory=dict)
    status: RunStatus
    message: str = ""
    ended: float | None = None
    host: str = ""
    pid: int = 0
    jobs: int = 0
    trials: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Lease:
    """The right to carry out a run until `expires`; `epoch` tells it from earlier and later ones."""

    run: str
    epoch: int
    holder: str
    host: str
    pid: int
    expires: float


class WishKind(StrEnum):
    """What can be wanted of a run that goes on."""

    ADD = "add"
    CANCEL = "cancel"
    PAUSE = "pause"
    UNPAUSE = "unpause"
    PRIORITY = "priority"


@dataclass(frozen=True, slots=True, kw_only=True)
class Wish:
    """One wish; `number` grows in the order in which they came."""

    number: int
    run: str
    job: str | None
    kind: WishKind
    body: Mapping[str, Json] = field(default_factory=dict)
    created: float


@dataclass(frozen=True, slots=True, kw_only=True)
class JobRecord:
    """One job of a run. `id` is the run's id, a dot and a number; `name` is what people call it.

    `created` is when it was submitted: its arrival and its deadline count from there.
    """

    id: str
    run: str
    name: str
    spec: Mapping[str, Json] = field(default_factory=dict)
    status: JobStatus = JobStatus.WAITING
    created: float = 0.0
    started: float | None = None
    ended: float | None = None
    result: Mapping[str, Json] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedTask:
    """A task of a job with what was planned for it (donors, cluster, share of the budget)."""

    task: Task
    plan: Mapping[str, Json] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Provenance:
    """Where a record is valid: times of different provenance are not compared.

    `family` is the part of the target that decides whether a schedule may be reused
    ("llvm", "cuda", …); `target` is the whole of it.
    """

    family: str
    target: str
    device_key: str
    measuring: str = ""
    tvm_version: str = ""

    def __post_init__(self) -> None:
        if not self.family or not self.device_key:
            raise ValueError(f"a record needs a target family and a device key, got {self}")


@dataclass(frozen=True, slots=True, kw_only=True)
class KeptTrial:
    """A trial that is to be committed, with the task that it belongs to and what its build told."""

    job: str
    task_key: str
    trial: Trial
    provenance: Provenance
    build_s: float = 0.0
    features: Mapping[str, float] = field(default_factory=dict)

    @property
    def run(self) -> str:
        """The run of its job."""
        return self.job.rpartition(".")[0]


@dataclass(frozen=True, slots=True, kw_only=True)
class TrialRecord(KeptTrial):
    """A trial kept for ever. `id` grows in the order in which trials were committed.

    `contest_s` is what it took when the best of its kernel were last measured side by side; None if it was
    not among them.
    """

    id: int
    kernel_class: str
    created: float
    contest_s: float | None = None

    @property
    def seconds(self) -> float | None:
        """The time that ranks the record, or None for a failure."""
        return self.trial.seconds

    @property
    def profile_s(self) -> float:
        """Device seconds the trial took, 0 for a failure."""
        return self.trial.outcome.profile_s if isinstance(self.trial.outcome, Measurement) else 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkloadRecord:
    """What a task's key stands for, shared by all runs."""

    key: str
    name: str
    kernel_class: str
    shapes: str
    gflop: float
    family: str
    target: str
    tvm_version: str
    payload: bytes = field(default=b"", repr=False, compare=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class SpanRecord:
    """One stage, or one candidate's part of it, on one resource.

    Seconds count from the start of the run. `ready_s` is when the stage could have
    started, so `start_s - ready_s` is how long it waited.
    """

    job: str
    task: str
    kind: str
    resource: str
    start_s: float
    end_s: float
    ready_s: float | None = None
    slots: int = 1

    def __post_init__(self) -> None:
        if self.end_s < self.start_s:
            raise ValueError(
                f"a {self.kind} span can't end at {self.end_s} s, before its start {self.start_s} s"
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """What an executor noted about one run since it last wrote; `view` is None if it looks the same.

    Its spans are on a clock to which `shift_s` is added for that of the run.
    """

    run: str
    notes: Mapping[str, Json] = field(default_factory=dict)
    spans: tuple[SpanRecord, ...] = ()
    shift_s: float = 0.0
    events: tuple[EventRecord, ...] = ()
    view: Mapping[str, Json] | None = None

    @property
    def blank(self) -> bool:
        """Whether there is nothing to write."""
        return not (self.notes or self.spans or self.events) and self.view is None


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownKernel:
    """The best time of one workload on one kind of device, and how many measurements there are."""

    key: str
    name: str
    kernel_class: str
    shapes: str
    gflop: float
    family: str
    device_key: str
    best_s: float
    measured: int


@dataclass(frozen=True, slots=True, kw_only=True)
class BankRow:
    """Records of one kernel class on one target family."""

    kernel_class: str
    family: str
    workloads: int
    measured: int
    failed: int
