"""What answers about jobs look like."""

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict

from tuneloom.app.hosting.expecting import Expectation
from tuneloom.app.hosting.watching import LogEntry
from tuneloom.report.data import Fact

Status = Literal["waiting", "running", "paused", "finished", "cancelled", "failed"]


class BundleTold(BaseModel):
    """The bundle of a job, one file."""

    digest: str
    size_bytes: int
    created: float


class JobTold(BaseModel):
    """A job; times are seconds since the epoch, `progress` is its latest known state."""

    id: str
    name: str
    tenant: str
    status: Status
    model: str
    target: str
    device: str
    trials: int
    seconds: float | None
    goal_ms: float | None
    goal_ratio: float | None
    goal_met: bool | None
    priority: int
    deadline_s: float | None
    deadline_met: bool | None
    created: float
    started: float | None
    ended: float | None
    before_ms: float | None
    after_ms: float | None
    rival: str | None
    """The runtime that the user would use instead, if the model was compared with it."""
    rival_ms: float | None
    beside_ms: float | None
    """The latency of the bundle, timed in turn with that runtime."""
    failure: str | None


class JobDetails(JobTold):
    """Everything known about one job, with an estimate while it waits."""

    expectation: Expectation | None
    progress: dict[str, Any] | None
    result: dict[str, Any]
    bundle: BundleTold | None


class JobPage(BaseModel):
    """A page of jobs, newest first; pass `next` as `before` to get the following page."""

    jobs: list[JobTold]
    next: int | None


class TaskTold(BaseModel):
    """One kernel of a job's model, before and after."""

    key: str
    name: str
    kernel_class: str
    shapes: str
    weight: int
    gflop: float
    trials: int
    failed: int
    before_ms: float | None
    after_ms: float | None


class TasksTold(BaseModel):
    """The kernels of a job's model."""

    tasks: list[TaskTold]


class CurveTold(BaseModel):
    """The best latency of the whole model against the number of trials."""

    trials: list[int]
    best_ms: list[float]


class SpanTold(BaseModel):
    """One stage, or one candidate's part of it, on one resource; seconds of the job's own clock."""

    id: int
    resource: str
    kind: str
    task: str
    start_s: float
    end_s: float
    ready_s: float | None
    slots: int


class ResourceTold(BaseModel):
    """A resource that a job used; `away` lists the times when it was lost."""

    model_config = ConfigDict(extra="ignore")
    name: str
    slots: int = 1
    device_key: str | None
    machine: str = ""
    away: list[list[float | None]] = []
    why_away: str = ""


class TimelineTold(BaseModel):
    """Which stage held which resource when; if incomplete, ask again with the last span's id as `after`."""

    resources: list[ResourceTold]
    spans: list[SpanTold]
    complete: bool


class LogTold(BaseModel):
    """The history of a job, newest first."""

    model_config = ConfigDict(json_schema_serialization_defaults_required=True)
    entries: list[LogEntry]


class GiftTold(BaseModel):
    """A schedule that one kernel gave to another; times are the receiver's, untuned and with it."""

    kernel: str
    donor: str
    source: str
    before_ms: float | None
    after_ms: float | None
    used: bool


class ProvenanceTold(BaseModel):
    """How a job was measured; `canary` has pairs of a time and the canary's slowdown at that time."""

    facts: list[Fact]
    canary: list[list[float]]
    reused: list[GiftTold]
