"""Which jobs and stages the core lets in."""

from collections.abc import Container, Iterable, Sequence

from tuneloom.errors import SchedulingError
from tuneloom.scheduling.floor import Floor
from tuneloom.scheduling.messages import StageFinished
from tuneloom.scheduling.moves import JOB_FINISHING
from tuneloom.scheduling.records import Job
from tuneloom.scheduling.stages import DeviceDemand, JobTicket, SlotDemand, StageRequest


def require_acceptable(job: str, ready: Sequence[StageRequest], live: Container[str]) -> None:
    """Raise SchedulingError for a stage of another job or an id that is in use."""
    for request in ready:
        if request.job != job:
            raise SchedulingError(f"stage {request.id!r} of job {request.job!r} came with job {job!r}")
        if request.id in live:
            raise _twice(job, request.id)
        if request.home and isinstance(request.needs, SlotDemand) and request.needs.host is not None:
            raise SchedulingError(f"stage {request.id!r} names a host and a home; give one of them")
    if len(ready) > 1 and len({request.id for request in ready}) < len(ready):
        ids = [request.id for request in ready]
        raise _twice(job, next(each for each in ids if ids.count(each) > 1))


def _twice(job: str, stage: str) -> SchedulingError:
    return SchedulingError(f"job {job!r} has a stage {stage!r} already; every stage needs its own id")


def require_continuation(job: Job, event: StageFinished) -> None:
    """Raise SchedulingError unless a job goes on with something or says that it is done."""
    if event.done and event.ready:
        raise SchedulingError(f"job {job.id!r} said it is done and gave {len(event.ready)} more stages")
    if job.state is JOB_FINISHING:
        return
    require_acceptable(job.ticket.id, event.ready, job.stages)
    if not event.done and not event.ready and len(job.stages) == 1:
        raise SchedulingError(
            f"job {job.id!r} has no stage left after {event.stage!r}; "
            "give it one in `ready` or say that it is done"
        )


def reason_to_refuse(floor: Floor, ticket: JobTicket, ready: Iterable[StageRequest]) -> str | None:
    """Why this job can't run on the resources present, or None if it can or agreed to wait."""
    if ticket.waits_for_devices:
        return None
    for key in _keys_wanted(ticket, ready):
        if key not in floor.devices:
            known = ", ".join(repr(other) for other in sorted(floor.devices)) or "none"
            return f"no device with key {key!r}; known: {known}"
    for request in ready:
        if not isinstance(request.needs, DeviceDemand) and not floor.could_ever(request.needs):
            return _why_no_host(floor, request)
    return None


def _keys_wanted(ticket: JobTicket, ready: Iterable[StageRequest]) -> list[str]:
    asked = {request.needs.key for request in ready if isinstance(request.needs, DeviceDemand)}
    return sorted(ticket.device_keys | asked)


def _why_no_host(floor: Floor, request: StageRequest) -> str:
    assert not isinstance(request.needs, DeviceDemand)
    hosts = ", ".join(f"{seat.name!r} ({seat.slots})" for seat in floor.hosts.values()) or "none"
    place = f"host {request.needs.host!r}" if request.needs.host else "any host"
    return (
        f"stage {request.id!r} needs {request.needs.slots} slots of {place}; hosts and their slots: {hosts}"
    )
