"""Wishes for a run that another process carries out: more jobs, pauses, ends, priorities.

They are rows in the store; the run's executor looks there about once a second and applies each
once, in the order in which they came. A run that waits is changed in the store itself.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any

from tuneloom.app.farm.aiming import with_listed_target
from tuneloom.app.requests.sources import numbered, require_possible
from tuneloom.app.runs.executing.bookkeeping import RESOURCES, present_keys
from tuneloom.app.runs.files import kept_files, own_files
from tuneloom.app.runs.settings import RunSettings
from tuneloom.errors import InputError, StoreError
from tuneloom.model import JobSpec
from tuneloom.store import (
    JobRecord,
    JobStatus,
    RunRecord,
    RunStatus,
    Store,
    WishKind,
    open_existing,
    owner_of,
)

_NOTHING: Mapping[str, Any] = {}


def wish(store: Store, run: str, kind: WishKind, job: str, body: Mapping[str, Any] = _NOTHING) -> bool:
    """Change a job, or leave a wish; says whether it is done already.

    Raises StoreError if the run has ended.
    """
    if not store.change_waiting(run, kind, job, body):
        store.add_wish(run, kind, job, body)
        return False
    if kind is WishKind.CANCEL and all(record.status.ended for record in store.jobs(run)):
        store.drop_blobs(owner_of(run))
    return True


_NOT_RUNNING = {
    RunStatus.FINISHED: "start a new one with `tuneloom tune`",
    RunStatus.FAILED: "`tuneloom report {run}` says why; resume it with `tuneloom resume {run}`",
    RunStatus.INTERRUPTED: "resume it with `tuneloom resume {run}`",
}


def add_jobs(
    name: str, specs: Sequence[JobSpec], place: str | None = None, *, renames: bool = False
) -> list[JobRecord]:
    """Add jobs to a running run; arrivals and deadlines count from now.

    Raises InputError, before anything is added, for a run that does not run, a device
    that it does not have, and a name that it has already; with `renames`, such a name
    gets a number instead.
    """
    with open_existing(place) as store:
        run = running(store, name)
        taken = {job.name for job in store.jobs(run.id)}
        farm = RunSettings.of_run(run.options, place).read_farm()
        specs = [with_listed_target(spec, farm) for spec in specs] if farm is not None else specs
        chosen = _renamed(specs, taken) if renames else specs
        _require_names(run.id, chosen, taken)
        for spec in chosen:
            require_possible(spec, device_keys(store, run.id))
        with kept_files(store, chosen) as complete:
            own_files(store, run.id, complete)
            try:
                return [store.add_job(run.id, spec.name, spec.to_json()) for spec in complete]
            except StoreError as error:
                raise InputError(str(error)) from error


def cancel(name: str, job: str | None, place: str | None = None) -> list[JobRecord]:
    """End a job, or all that go on; what they measured is kept. Returns those that were told to end."""
    with open_existing(place) as store:
        run = running(store, name)
        wanted = [_job(store, run, job)] if job is not None else store.jobs(run.id)
        going_on = [record for record in wanted if not record.status.ended]
        if job is not None and not going_on:
            raise InputError(f"job {job!r} is {wanted[0].status.value} already")
        for record in going_on:
            wish(store, run.id, WishKind.CANCEL, record.id)
        return going_on


def pause(name: str, job: str, place: str | None = None) -> JobRecord:
    """Start no new stage of a job; stages that run come to their end."""
    return _wish(name, job, WishKind.PAUSE, (JobStatus.WAITING, JobStatus.RUNNING), place)


def unpause(name: str, job: str, place: str | None = None) -> JobRecord:
    """Resume a paused job."""
    return _wish(name, job, WishKind.UNPAUSE, (JobStatus.PAUSED,), place)


def prioritise(name: str, job: str, priority: int, place: str | None = None) -> JobRecord:
    """Give a job that goes on another priority."""
    allowed = (JobStatus.WAITING, JobStatus.RUNNING, JobStatus.PAUSED)
    return _wish(name, job, WishKind.PRIORITY, allowed, place, {"priority": priority})


def running(store: Store, name: str) -> RunRecord:
    """The run of this name; raises InputError unless an executor has it or will take it."""
    run = store.run(name)
    if run.status not in (RunStatus.RUNNING, RunStatus.WAITING):
        remedy = _NOT_RUNNING[run.status].format(run=run.id)
        raise InputError(f"run {run.id} is not running, it is {run.status.value}; {remedy}")
    return run


def device_keys(store: Store, run: str) -> list[str]:
    """The keys of the devices that a run has; none while it has not said so yet."""
    return present_keys(store.notes(run).get(RESOURCES))


def _wish(
    name: str,
    job: str,
    kind: WishKind,
    allowed: tuple[JobStatus, ...],
    place: str | None,
    body: dict[str, int] | None = None,
) -> JobRecord:
    with open_existing(place) as store:
        run = running(store, name)
        record = _job(store, run, job)
        if record.status not in allowed:
            raise InputError(f"job {job!r} is {record.status.value}; nothing to change")
        wish(store, run.id, kind, record.id, body or {})
        return record


def _job(store: Store, run: RunRecord, name: str) -> JobRecord:
    jobs = store.jobs(run.id)
    for job in jobs:
        if name in (job.name, job.id):
            return job
    raise InputError(f"run {run.id} has no job {name!r}; known: {', '.join(repr(j.name) for j in jobs)}")


def _renamed(specs: Sequence[JobSpec], taken: Collection[str]) -> list[JobSpec]:
    names = numbered([spec.name for spec in specs], taken)
    return [replace(spec, name=name) for spec, name in zip(specs, names, strict=True)]


def _require_names(run: str, specs: Sequence[JobSpec], taken: Collection[str]) -> None:
    for spec in specs:
        if spec.name in taken:
            raise InputError(
                f"run {run} already has a job named {spec.name!r}; choose another --name", field="name"
            )
