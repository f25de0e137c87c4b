"""Records for and from other tuners: stock MetaSchedule databases, and formats for kernels."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from tuneloom.app.conducting.calling import call_in_worker
from tuneloom.app.kinds.finding import FALLBACK, kind_named
from tuneloom.errors import InputError, RecordsError
from tuneloom.store import JobRecord, Provenance, RunStatus, open_existing, open_store

if TYPE_CHECKING:
    from tuneloom.tuners.tvm.databases import ForeignDatabase

METASCHEDULE, KERNEL = "metaschedule", "kernel"


def export_records(run: str, folder: Path, place: str | None) -> int:
    """Write the measured trials of a run's models as a stock MetaSchedule database.

    Raises InputError if the run tuned kernels alone.
    """
    tasks = []
    with open_existing(place) as store:
        jobs = store.jobs(store.run(run).id)
        exportable = [job for job in jobs if _records_of(job) == METASCHEDULE]
        if jobs and not exportable:
            raise InputError(
                f"run {run} tuned no model; `tuneloom kernel export` writes the trials of kernels"
            )
        for job in exportable:
            records = store.trials(job.id)
            for planned in store.tasks(job.id):
                own = [r for r in records if r.task_key == planned.task.key]
                if own:
                    tasks.append((planned.task, own[0].provenance.target, [r.trial for r in own]))
    count: int = call_in_worker("tuneloom.tuners.tvm.databases:write_database", str(folder), tasks)
    return count


def _records_of(job: JobRecord) -> str:
    """The format in which a job's trials can be exported."""
    return kind_named(str(job.spec.get("tuner", FALLBACK))).records


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportSummary:
    """What came of an import."""

    run: str
    tasks: int
    added: int
    skipped: dict[str, int]


def import_records(folder: Path, device_key: str, place: str | None) -> ImportSummary:
    """Take a stock MetaSchedule database into the bank; what can't be used is counted by reason."""
    found: ForeignDatabase = call_in_worker("tuneloom.tuners.tvm.databases:read_database", str(folder))
    with open_store(place) as store:
        run = store.create_run(f"import {folder}").id
        added = 0
        for number, foreign in enumerate(found.tasks):
            job = store.add_job(run, f"import-{number}").id
            store.add_tasks(
                job,
                [foreign.task],
                family=foreign.family,
                target=foreign.target,
                tvm_version=found.tvm_version,
            )
            provenance = Provenance(
                family=foreign.family,
                target=foreign.target,
                device_key=device_key,
                measuring="imported",
                tvm_version=found.tvm_version,
            )
            added += store.add_trials(job, foreign.task.key, foreign.trials, provenance)
        store.finish_run(run, RunStatus.FINISHED, f"{added} records imported")
        return ImportSummary(run=run, tasks=len(found.tasks), added=added, skipped=found.skipped)


def export_kernel(run: str, path: Path, form: str, job: str | None = None, place: str | None = None) -> int:
    """Write all trials of a run's kernel, finished or not; returns how many there were.

    Raises RecordsError for a run without such a kernel, or with several and none named,
    and OutputError if the file can't be written.
    """
    from tuneloom.tuners.replay import files
    from tuneloom.tuners.replay.exporting import recording_of

    with open_existing(place) as store:
        record = store.run(run)
        chosen = _chosen(record.id, store.jobs(record.id), job)
        trials = [each.trial for each in store.trials(chosen.id)]
    if not trials:
        raise RecordsError(f"run {record.id} has no trials of {chosen.name} yet")
    files.write(recording_of(chosen.name, trials), path, form)
    return len(trials)


def _chosen(run: str, jobs: Sequence[JobRecord], name: str | None) -> JobRecord:
    tuned = [job for job in jobs if _records_of(job) == KERNEL]
    kernels = [job for job in tuned if name in (None, job.name)]
    if len(kernels) == 1:
        return kernels[0]
    known = ", ".join(repr(job.name) for job in tuned)
    if not known:
        raise RecordsError(
            f"run {run} tuned no hand-written kernel; `tuneloom export` writes records of models"
        )
    raise RecordsError(f"run {run} has the kernels {known}; name one of them with --job")
