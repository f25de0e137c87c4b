"""What must hold after every event, as code."""

from collections.abc import Mapping

from tuneloom.errors import SchedulingError
from tuneloom.model import Device
from tuneloom.scheduling.floor import Floor
from tuneloom.scheduling.moves import JobState
from tuneloom.scheduling.records import EndedJob, Job, Seat, Stage, StageState
from tuneloom.scheduling.stages import DeviceDemand, SlotDemand


def require(holds: bool, what: str) -> None:
    """Raise SchedulingError with this text unless the invariant holds."""
    if not holds:
        raise SchedulingError(f"broken invariant: {what}")


def check_books(
    floor: Floor, jobs: Mapping[str, Job], ended: Mapping[str, EndedJob], *, overlaps: bool
) -> None:
    """Check the books of floor and jobs against each other; with `overlaps`, grants are shared on purpose."""
    for seat in floor.seats.values():
        _check_seat(seat, overlaps=overlaps)
    holding = {stage for seat in floor.seats.values() for stage in seat.holders}
    running: set[Stage] = set()
    for job in jobs.values():
        _check_job(job)
        running.update(stage for stage in job.stages.values() if stage.state is StageState.RUNNING)
    require(holding == running, "who holds something is exactly who runs")
    require(not jobs.keys() & ended.keys(), "an ended job is not alive")
    if not running:
        _check_nothing_could_run(floor, jobs)


def _check_seat(seat: Seat, *, overlaps: bool) -> None:
    require(seat.taken == sum(seat.holders.values()), f"{seat.name} counts what it gave out")
    for stage, slots in seat.holders.items():
        grant = stage.grant
        require(grant is not None and grant.resource == seat.name, f"{seat.name} is held by grant")
        require(grant is not None and grant.slots == slots, f"{seat.name} gave what was granted")
        require(grant is not None and grant.shared == overlaps, "grants are shared under synchronous only")
        _check_grant(seat, stage)
    if overlaps:
        _check_shared_seat(seat)
        return
    require(seat.taken <= seat.slots, f"no slot of {seat.name} is given twice")
    require(seat.key is None or len(seat.holders) <= 1, f"device {seat.name} has one holder")


def _check_shared_seat(seat: Seat) -> None:
    by_job: dict[str, int] = {}
    for stage, slots in seat.holders.items():
        by_job[stage.job.id] = by_job.get(stage.job.id, 0) + slots
    require(all(used <= seat.slots for used in by_job.values()), f"a job takes {seat.name} once at most")


def _check_grant(seat: Seat, stage: Stage) -> None:
    needs = stage.request.needs
    if isinstance(needs, DeviceDemand):
        require(seat.key == needs.key, f"{stage.request.id} runs on a device of its key")
    elif isinstance(seat.resource, Device):
        _check_loan(seat.resource, needs)
    else:
        require(needs.host in (None, seat.name), f"{stage.request.id} runs where its state lives")
        require(seat.holders[stage] == needs.slots, f"{stage.request.id} has the slots it needs")


def _check_loan(device: Device, needs: SlotDemand) -> None:
    require(needs.lendable and needs.slots == 1, f"only a small lendable stage borrows {device.name}")
    require(device.lends_to is not None, f"{device.name} lends")
    require(needs.host in (None, device.lends_to), f"{device.name} lends to its own host's stages")


def _check_job(job: Job) -> None:
    stages = job.stages.values()
    require(job.running == sum(s.state is StageState.RUNNING for s in stages), f"{job.id} counts its runs")
    busy = job.state in (JobState.RUNNING, JobState.PAUSING, JobState.FINISHING)
    require(busy == (job.running > 0), f"{job.id} is {job.state} with {job.running} stages running")
    waiting = any(stage.state is StageState.WAITING for stage in stages)
    require(not waiting or job.accepts_starts, f"{job.id} is {job.state} and has no waiting stage")
    require(bool(job.stages), f"{job.id} is alive and has something to do")
    if job.accepts_starts:
        held = any(stage.state is StageState.HELD for stage in stages)
        require(not held, f"{job.id} is {job.state} and has no held stage")


def _check_nothing_could_run(floor: Floor, jobs: Mapping[str, Job]) -> None:
    """Nothing runs at all: then each job with ready stages has one that no resource here fits."""
    for job in jobs.values():
        waiting = [stage for stage in job.stages.values() if stage.state is StageState.WAITING]
        able = all(floor.could_ever(stage.request.needs) for stage in waiting)
        require(not waiting or not able, f"nothing runs, yet {job.id} could")


def idle_devices_with_work(floor: Floor, waiting_keys: dict[str, int]) -> list[str]:
    """Keys for which a device idles although a stage waits for it."""
    return [key for key, count in waiting_keys.items() if count and floor.idle_device(key) is not None]
