"""Events that go into the core and commands that come out. Time comes in with the event."""

from dataclasses import dataclass

from tuneloom.model import Device, Host
from tuneloom.scheduling.stages import Grant, JobTicket, StageRequest


@dataclass(frozen=True, slots=True, kw_only=True)
class ResourceAdded:
    at_s: float
    resource: Host | Device


@dataclass(frozen=True, slots=True, kw_only=True)
class ResourceLost:
    """A host or device is gone; what ran on it is queued again."""

    at_s: float
    name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class JobSubmitted:
    at_s: float
    ticket: JobTicket
    ready: tuple[StageRequest, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class StageFinished:
    """A stage is done; `ready` are the stages this made possible, possibly of other lanes.

    `done` says that the job has nothing more to do once its running stages end.
    """

    at_s: float
    job: str
    stage: str
    ready: tuple[StageRequest, ...] = ()
    done: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class StageLost:
    """The worker of a stage died through no fault of the stage: it is queued again."""

    at_s: float
    job: str
    stage: str


@dataclass(frozen=True, slots=True, kw_only=True)
class JobCancelled:
    at_s: float
    job: str


@dataclass(frozen=True, slots=True, kw_only=True)
class JobPaused:
    """Running stages end; no new one starts until the job is resumed."""

    at_s: float
    job: str


@dataclass(frozen=True, slots=True, kw_only=True)
class JobResumed:
    at_s: float
    job: str


@dataclass(frozen=True, slots=True, kw_only=True)
class JobReprioritised:
    """Somebody gave the job another priority; stages that wait are weighed anew."""

    at_s: float
    job: str
    priority: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ShareUsed:
    """Jobs of this share used devices of a key elsewhere, for so many seconds; that counts here, too."""

    at_s: float
    share: str
    key: str
    seconds: float


Event = (
    ResourceAdded
    | ResourceLost
    | JobSubmitted
    | StageFinished
    | StageLost
    | JobCancelled
    | JobPaused
    | JobResumed
    | JobReprioritised
    | ShareUsed
)


@dataclass(frozen=True, slots=True, kw_only=True)
class StartStage:
    request: StageRequest
    grant: Grant


@dataclass(frozen=True, slots=True, kw_only=True)
class StopStage:
    """End this running stage; what it held is free already, its result is ignored."""

    job: str
    stage: str


@dataclass(frozen=True, slots=True, kw_only=True)
class FinishJob:
    job: str
    cancelled: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class RefuseJob:
    """The job can't run on the resources there are."""

    job: str
    reason: str


Command = StartStage | StopStage | FinishJob | RefuseJob
