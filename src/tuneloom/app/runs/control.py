"""Wishes for a run that another process carries out: more jobs, pauses, ends.

They are left in the store; the run looks there about once a second.
"""

import time
from collections.abc import Collection, Sequence
from contextlib import closing
from dataclasses import replace

from tuneloom.app.requests.sources import numbered, require_possible
from tuneloom.app.runs.resources import RESOURCES, present_keys
from tuneloom.errors import InputError
from tuneloom.model import JobSpec
from tuneloom.store import JobRecord, JobStatus, RunRecord, RunStatus, Store, open_existing

_NOT_RUNNING = {
    RunStatus.FINISHED: "start another with `tuneloom tune`",
    RunStatus.FAILED: "`tuneloom runs` says why; go on with it by `tuneloom resume {run}`",
    RunStatus.INTERRUPTED: "go on with it by `tuneloom resume {run}`",
}


def add_jobs(
    name: str, specs: Sequence[JobSpec], place: str | None = None, *, renames: bool = False
) -> list[JobRecord]:
    """Add jobs to a running run; arrivals and deadlines count from now.

    Raises InputError, before anything is added, for a run that does not run, a device
    that it does not have, and a name that it has already; with `renames`, such a name
    gets a number instead.
    """
    with closing(open_existing(place)) as store:
        run = running(store, name)
        taken = {job.name for job in store.jobs(run.id)}
        chosen = _renamed(specs, taken) if renames else specs
        _require_names(run.id, chosen, taken)
        for spec in chosen:
            require_possible(spec, device_keys(store, run.id))
        passed_s = time.time() - run.created
        added = [store.add_job(run.id, spec.name, _later(spec, passed_s).to_json()) for spec in chosen]
        _require_taken(store, run.id, added)
        return added


def cancel(name: str, job: str | None, place: str | None = None) -> list[JobRecord]:
    """End a job, or all that go on; what they measured is kept. Returns those that were told to end."""
    with closing(open_existing(place)) as store:
        run = running(store, name)
        wanted = [_job(store, run, job)] if job is not None else store.jobs(run.id)
        going_on = [record for record in wanted if not record.status.ended]
        if job is not None and not going_on:
            raise InputError(f"job {job!r} is {wanted[0].status.value} already")
        for record in going_on:
            store.set_job(record.id, JobStatus.CANCELLED)
        return going_on


def pause(name: str, job: str, place: str | None = None) -> JobRecord:
    """Start no new stage of a job; stages that run come to their end."""
    return _move(name, job, JobStatus.PAUSED, (JobStatus.WAITING, JobStatus.RUNNING), place)


def unpause(name: str, job: str, place: str | None = None) -> JobRecord:
    """Let a paused job go on."""
    return _move(name, job, JobStatus.RUNNING, (JobStatus.PAUSED,), place)


def running(store: Store, name: str) -> RunRecord:
    """The run of this name; raises InputError unless a process works on it."""
    run = store.run(name)
    if run.status is not RunStatus.RUNNING:
        remedy = _NOT_RUNNING[run.status].format(run=run.id)
        raise InputError(f"run {run.id} does not run, it is {run.status.value}; {remedy}")
    return run


def device_keys(store: Store, run: str) -> list[str]:
    """The keys of the devices that a run has; none while it has not said so yet."""
    return present_keys(store.notes(run).get(RESOURCES))


def _move(name: str, job: str, to: JobStatus, allowed: tuple[JobStatus, ...], place: str | None) -> JobRecord:
    with closing(open_existing(place)) as store:
        record = _job(store, running(store, name), job)
        if record.status not in allowed:
            raise InputError(f"job {job!r} is {record.status.value}; nothing to change")
        store.set_job(record.id, to)
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
            raise InputError(f"run {run} has a job {spec.name!r} already; give another --name")


def _later(spec: JobSpec, passed_s: float) -> JobSpec:
    """The same job on the clock of a run that began so long ago."""
    deadline_s = None if spec.deadline_s is None else spec.deadline_s + passed_s
    arrival_s = spec.arrival_s + passed_s if spec.arrival_s else 0.0
    return replace(spec, deadline_s=deadline_s, arrival_s=arrival_s)


def _require_taken(store: Store, run: str, added: Sequence[JobRecord]) -> None:
    """A run that ends at this very moment may miss new jobs; then nobody should wait for them."""
    if store.run(run).status is RunStatus.RUNNING:
        return
    missed = [job for job in added if store.job(job.id).status is JobStatus.WAITING]
    for job in missed:
        store.set_job(job.id, JobStatus.CANCELLED)
    if missed:
        raise InputError(f"run {run} ended just now; start another with `tuneloom tune`")
