"""Read-only pictures of the core for people to look at."""

from collections import Counter
from dataclasses import dataclass

from tuneloom.scheduling.core import Core
from tuneloom.scheduling.moves import JobState
from tuneloom.scheduling.records import Job, Seat, Stage, StageState
from tuneloom.scheduling.stages import Demand, DeviceDemand


@dataclass(frozen=True, slots=True, kw_only=True)
class RunningView:
    """A stage that runs now."""

    job: str
    stage: str
    lane: str
    kind: str
    resource: str
    slots: int
    since_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class ResourceView:
    """A resource: `busy_s` is slot-seconds in use so far, `queue` counts stages that could run here."""

    name: str
    key: str | None
    slots: int
    taken: int
    busy_s: float
    queue: int
    running: tuple[RunningView, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class JobView:
    """A live job; `waiting` counts ready stages without a resource, `stranded` those no resource fits."""

    id: str
    state: JobState
    priority: int
    waiting: int
    stranded: int
    running: tuple[RunningView, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class CoreView:
    """The whole floor at one moment."""

    at_s: float
    resources: tuple[ResourceView, ...]
    jobs: tuple[JobView, ...]
    ended: int


def view(core: Core, at_s: float | None = None) -> CoreView:
    """A picture of the core as of its last event, or of a later moment; takes time linear in the state."""
    now_s = core.now_s if at_s is None else max(at_s, core.now_s)
    queues = Counter(
        _queue_name(stage.request.needs)
        for job in core.jobs.values()
        for stage in job.stages.values()
        if stage.state is StageState.WAITING
    )
    return CoreView(
        at_s=now_s,
        resources=tuple(_resource_view(seat, queues, now_s) for seat in core.floor.seats.values()),
        jobs=tuple(_job_view(core, job) for job in core.jobs.values()),
        ended=len(core.ended),
    )


def _queue_name(needs: Demand) -> tuple[str, str | None]:
    return ("device", needs.key) if isinstance(needs, DeviceDemand) else ("host", needs.host)


def _resource_view(seat: Seat, queues: Counter[tuple[str, str | None]], at_s: float) -> ResourceView:
    if seat.key is None:
        queue = queues["host", seat.name] + queues["host", None]
    else:
        queue = queues["device", seat.key]
    busy_s = seat.busy_slot_s + min(seat.taken, seat.slots) * (at_s - seat.changed_s)
    running = tuple(_running_view(stage) for stage in seat.holders)
    return ResourceView(
        name=seat.name,
        key=seat.key,
        slots=seat.slots,
        taken=seat.taken,
        busy_s=busy_s,
        queue=queue,
        running=running,
    )


def _job_view(core: Core, job: Job) -> JobView:
    ready = [stage for stage in job.stages.values() if stage.state is not StageState.RUNNING]
    return JobView(
        id=job.id,
        state=job.state,
        priority=job.ticket.priority,
        waiting=len(ready),
        stranded=sum(not core.floor.could_ever(stage.request.needs) for stage in ready),
        running=tuple(_running_view(s) for s in job.stages.values() if s.state is StageState.RUNNING),
    )


def _running_view(stage: Stage) -> RunningView:
    assert stage.grant is not None
    return RunningView(
        job=stage.job.id,
        stage=stage.request.id,
        lane=stage.request.lane,
        kind=stage.request.kind,
        resource=stage.grant.resource,
        slots=stage.grant.slots,
        since_s=stage.started_s,
    )
