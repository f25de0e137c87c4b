"""What requests and answers look like; the description of the API is made from these."""

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, StringConstraints

_MOST_WHOLE = 2**31 - 1
Text = Annotated[str, StringConstraints(min_length=1, max_length=200, pattern=r"^[^\x00-\x1f\x7f]+$")]
Size = Annotated[int, Field(ge=1, le=_MOST_WHOLE)]
Positive = Annotated[float, Field(gt=0, le=1e9, allow_inf_nan=False)]
Status = Literal["waiting", "running", "paused", "finished", "cancelled", "failed"]


class Asked(BaseModel):
    """A body; a key that nobody knows is a mistake."""

    model_config = ConfigDict(extra="forbid", strict=True)


class JobAsked(Asked):
    """A job. What is wanted is a budget (trials, seconds), a goal (goal_ms, goal_ratio), or both."""

    model_config = ConfigDict(
        extra="forbid",
        strict=True,
        json_schema_extra={"examples": [{"model": "zoo:squeezenet", "trials": 500, "goal_ms": 3.0}]},
    )
    model: Text = Field(description="the digest of an uploaded model, or a name such as zoo:resnet18")
    name: Annotated[Text, Field(max_length=100)] | None = None
    tuner: Text | None = None
    target: Text | None = Field(default=None, description="cpu, cuda, or a TVM target")
    device: Text | None = Field(default=None, description="the key of the device to measure on")
    trials: Size | None = Field(default=None, description="at most so many trials (default: 1000)")
    seconds: Positive | None = Field(default=None, description="at most so much time for tuning")
    goal_ms: Positive | None = Field(default=None, description="end as soon as the model is this fast")
    goal_ratio: Positive | None = Field(
        default=None, description="end as soon as it takes at most so many times as long as in ONNX Runtime"
    )
    deadline_s: Positive | None = Field(default=None, description="wanted so many seconds from now")
    priority: Annotated[int, Field(ge=-_MOST_WHOLE, le=_MOST_WHOLE)] | None = None
    batch: Size | None = None
    seed: Annotated[int, Field(ge=0, le=_MOST_WHOLE)] | None = None
    shapes: dict[Text, Annotated[list[Size], Field(min_length=1, max_length=16)]] | None = Field(
        default=None, description="sizes of inputs that the model leaves open", max_length=64
    )
    layout: Text | None = None
    reuse: Literal["auto", "off", "transfer", "share", "transfer-only"] | None = None
    run_timeout_s: Positive | None = None
    build_timeout_s: Positive | None = None
    waits_for_devices: bool | None = None


class PriorityAsked(Asked):
    """Another priority for a job."""

    priority: Annotated[int, Field(ge=-_MOST_WHOLE, le=_MOST_WHOLE)]


class LimitsAsked(Asked):
    """A tenant's share and quotas; what is left out keeps its default, or its value."""

    weight: Annotated[float, Field(gt=0, le=1000, allow_inf_nan=False)] | None = None
    jobs_at_once: Annotated[int, Field(ge=0, le=_MOST_WHOLE)] | None = None
    trials_a_day: Annotated[int, Field(ge=0, le=_MOST_WHOLE)] | None = None
    bytes_stored: Annotated[int, Field(ge=0, le=2**50)] | None = None
    most_priority: Annotated[int, Field(ge=0, le=_MOST_WHOLE)] | None = None
    shares_records: bool | None = Field(default=None, description="whether its records help other tenants")


class TenantAsked(LimitsAsked):
    """A new tenant."""

    name: Annotated[str, StringConstraints(pattern=r"^[a-z0-9][a-z0-9-]{0,39}$")]


class TokenAsked(Asked):
    """A new token of a tenant."""

    tenant: Annotated[str, StringConstraints(pattern=r"^[a-z0-9][a-z0-9-]{0,39}$")]
    name: Text = Field(description="what it is for")
    role: Literal["reader", "submitter", "administrator"]
    days: Annotated[float, Field(gt=0, le=36500, allow_inf_nan=False)] | None = Field(
        default=None, description="how long it opens anything (default: for ever)"
    )


class LoginAsked(Asked):
    """A token that is exchanged for a session of the page."""

    token: Text = Field(description="a token of any role")


class ModelTold(BaseModel):
    """An uploaded model. `summary` has its inputs, or the reason why it was refused."""

    digest: str
    name: str
    size_bytes: int
    created: float
    state: Literal["checking", "ready", "refused"]
    summary: dict[str, Any]


class ModelPage(BaseModel):
    """Some models, newest first; `next` is the `before` of the page after this."""

    models: list[ModelTold]
    next: int | None


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
    """All that is known of one job; what it may come to is told while it waits."""

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


class BankRowTold(BaseModel):
    """What is known of a class of kernels on a family of targets."""

    kernel_class: str
    family: str
    workloads: int
    measured: int
    failed: int


class BankTold(BaseModel):
    """What is known."""

    rows: list[BankRowTold]


class KernelTold(BaseModel):
    """The best time of one kernel on one kind of device."""

    key: str
    name: str
    kernel_class: str
    shapes: str
    gflop: float
    family: str
    device_key: str
    best_ms: float
    measured: int


class KernelPage(BaseModel):
    """Some kernels by their keys; `next` is the `after` of the page after this."""

    kernels: list[KernelTold]
    next: str | None


class DeviceTold(BaseModel):
    """A resource of an executor that carries something out now."""

    executor: str
    name: str
    key: str | None
    slots: int
    taken: int
    utilisation: float
    queue: int
    now: str


class DevicesTold(BaseModel):
    """All resources."""

    devices: list[DeviceTold]


class AbsenceTold(BaseModel):
    """A time without a device; `until` is null while it has not returned."""

    name: str
    since: float
    until: float | None
    reason: str


class DeviceHistoryTold(BaseModel):
    """What recent jobs noted about the devices with one key; times are seconds since the epoch."""

    key: str
    names: list[str]
    last_seen: float
    canary: list[list[float]]
    absences: list[AbsenceTold]


class DeviceHistoriesTold(BaseModel):
    """Devices over time."""

    devices: list[DeviceHistoryTold]


class TenantTold(BaseModel):
    """A tenant with its limits and what it uses of them."""

    name: str
    created: float
    weight: float
    jobs_at_once: int
    trials_a_day: int
    bytes_stored: int
    most_priority: int
    shares_records: bool
    used_jobs: int
    used_trials: int
    used_bytes: int


class TenantsTold(BaseModel):
    """All tenants."""

    tenants: list[TenantTold]


class TokenTold(BaseModel):
    """A token without its secret."""

    id: str
    tenant: str
    name: str
    role: Literal["reader", "submitter", "administrator"]
    created: float
    expires: float | None
    revoked: float | None


class TokenMade(TokenTold):
    """A new token; `token` is shown this once."""

    token: str


class TokensTold(BaseModel):
    """Tokens."""

    tokens: list[TokenTold]


class AuditTold(BaseModel):
    """One line of the audit log."""

    number: int
    at: float
    tenant: str
    token: str
    action: str
    subject: str
    request_id: str
    detail: dict[str, Any]


class AuditPage(BaseModel):
    """Some lines, newest first; `next` is the `before` of the page after this."""

    entries: list[AuditTold]
    next: int | None


class SessionTold(BaseModel):
    """A session of the page; its secret is in a cookie that no script can read."""

    tenant: str
    token: str
    name: str
    role: Literal["reader", "submitter", "administrator"]
    expires: float
    proof: str = Field(description="the header X-CSRF-Token of every write in this session")


class LoginState(BaseModel):
    """The server's version, and who is logged in, if anybody is."""

    version: str
    session: SessionTold | None


class AcceptedTold(BaseModel):
    """What may be uploaded and submitted here."""

    formats: list[str]
    tuners: list[str]
    most_model_bytes: int


class SelfTold(BaseModel):
    """Whose token this is, what its tenant may use, and what the server is."""

    tenant: str
    token: str
    role: Literal["reader", "submitter", "administrator"]
    version: str
    quota: TenantTold
    accepts: AcceptedTold


class HealthTold(BaseModel):
    """Whether the server works."""

    status: Literal["ok"]
