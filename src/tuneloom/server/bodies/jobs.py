"""What answers about jobs look like."""

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict

Status = Literal["waiting", "running", "paused", "finished", "cancelled", "failed"]


class BundleTold(BaseModel):
    """The bundle of a job, one file."""

    digest: str
    size_bytes: int
    created: float


class JobTold(BaseModel):
    """A job; times are seconds since the epoch, `progress` is what its executor saw last."""

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
    failure: str | None


class RangeTold(BaseModel):
    """A number that is expected, and between what it probably lies."""

    expected: float
    low: float
    high: float


class ExpectationTold(BaseModel):
    """What a job may come to, from `jobs` earlier ones of your tenant; `words` tell it in short."""

    jobs: int
    latency_ms: RangeTold | None
    seconds: RangeTold | None
    known_ms: float | None
    words: str


class JobDetails(JobTold):
    """Everything known about one job; its expectation is given while it waits."""

    expectation: ExpectationTold | None
    progress: dict[str, Any] | None
    result: dict[str, Any]
    bundle: BundleTold | None


class JobPage(BaseModel):
    """Some jobs, newest first; `next` is the `before` of the page after this."""

    jobs: list[JobTold]
    next: int | None


class TaskTold(BaseModel):
    """One kernel of a job's model, before and after."""

    key: str
    name: str
    kernel_class: str
    shapes: str
    weight: int
    trials: int
    failed: int
    before_ms: float | None
    after_ms: float | None


class TasksTold(BaseModel):
    """The kernels of a job's model."""

    tasks: list[TaskTold]


class CurveTold(BaseModel):
    """The best latency of the whole model after so many trials."""

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
    """A resource that a job had; `away` are the times when it was lost."""

    model_config = ConfigDict(extra="ignore")
    name: str
    slots: int = 1
    device_key: str | None
    machine: str = ""
    away: list[list[float | None]] = []
    why_away: str = ""


class TimelineTold(BaseModel):
    """Who held which resource when; if it is not complete, ask for what comes after the last span."""

    resources: list[ResourceTold]
    spans: list[SpanTold]
    complete: bool


class LogEntryTold(BaseModel):
    """Something that happened to a job."""

    at: float
    kind: Literal["state", "request", "failure", "device"]
    text: str
    detail: str


class LogTold(BaseModel):
    """What happened to a job, newest first."""

    entries: list[LogEntryTold]


class FactTold(BaseModel):
    """One line about how a job was measured."""

    name: str
    value: str


class GiftTold(BaseModel):
    """A schedule that one kernel gave to another; times are the receiver's, untuned and with it."""

    kernel: str
    donor: str
    source: str
    before_ms: float | None
    after_ms: float | None
    used: bool


class ProvenanceTold(BaseModel):
    """How a job was measured; `canary` are pairs of a time and the canary's time against its quiet one."""

    facts: list[FactTold]
    canary: list[list[float]]
    reused: list[GiftTold]
