"""Records for and from stock MetaSchedule databases."""

from dataclasses import dataclass
from pathlib import Path

from tuneloom.app.conducting.calling import call_in_worker
from tuneloom.app.kinds.finding import FALLBACK, kind_named
from tuneloom.errors import InputError
from tuneloom.store import JobRecord, Provenance, RunStatus, open_existing, open_store
from tuneloom.tuners.tvm.databases import ForeignDatabase

METASCHEDULE = "metaschedule"


def export_records(run: str, folder: Path, place: str | None) -> int:
    """Write the measured trials of a run's models as a stock MetaSchedule database.

    Raises InputError if the run tuned kernels alone.
    """
    store = open_existing(place)
    try:
        tasks = []
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
    finally:
        store.close()
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
    store = open_store(place)
    try:
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
    finally:
        store.close()
