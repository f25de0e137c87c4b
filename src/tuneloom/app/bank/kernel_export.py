"""What kernel runs measured, in the formats that other tuners read."""

from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

from tuneloom.app.kinds.finding import FALLBACK, kind_named
from tuneloom.errors import RecordsError
from tuneloom.store import JobRecord, open_existing

KERNEL = "kernel"


def export_kernel(run: str, path: Path, form: str, job: str | None = None, place: str | None = None) -> int:
    """Write all trials of a run's kernel, finished or not; returns how many there were.

    Raises RecordsError for a run without such a kernel, or with several and none named,
    and OutputError if the file can't be written.
    """
    from tuneloom.tuners.replay import files
    from tuneloom.tuners.replay.exporting import recording_of

    with closing(open_existing(place)) as store:
        record = store.run(run)
        chosen = _chosen(record.id, store.jobs(record.id), job)
        trials = [each.trial for each in store.trials(chosen.id)]
    if not trials:
        raise RecordsError(f"run {record.id} has no trials of {chosen.name} yet")
    files.write(recording_of(chosen.name, trials), path, form)
    return len(trials)


def _chosen(run: str, jobs: Sequence[JobRecord], name: str | None) -> JobRecord:
    tuned = [job for job in jobs if kind_named(str(job.spec.get("tuner", FALLBACK))).records == KERNEL]
    kernels = [job for job in tuned if name in (None, job.name)]
    if len(kernels) == 1:
        return kernels[0]
    known = ", ".join(repr(job.name) for job in tuned)
    if not known:
        raise RecordsError(
            f"run {run} tuned no hand-written kernel; `tuneloom export` writes records of models"
        )
    raise RecordsError(f"run {run} has the kernels {known}; name one of them with --job")
