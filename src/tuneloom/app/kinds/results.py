"""What came out of a job, as plain data for the store, the bundle and people."""

from dataclasses import asdict
from statistics import median
from typing import Any

from tuneloom.app.kinds.kernel.job import KernelJob
from tuneloom.app.kinds.kernel.results import kernel_result
from tuneloom.app.kinds.model.job import ModelJob
from tuneloom.app.tasks.progress import TaskProgress

_FIRST_SONGS = 3


def job_result(job: ModelJob) -> dict[str, Any]:
    """Latencies before and after, per kernel and of the whole model; empty parts are left out."""
    result: dict[str, Any] = {"kernels": kernel_results(job)}
    if job.tuning is not None:
        result["trials"] = job.tuning.spent
        result["failures"] = failures(job)
        result["canary_s"] = [seconds for _, seconds in job.tuning.canary_s]
    check = job.finish.check if job.finish else None
    if check is not None:
        result["latency_before_s"] = median(check.untuned_s)
        result["latency_after_s"] = median(check.tuned_s)
        result["latencies_before_s"] = list(check.untuned_s)
        result["latencies_after_s"] = list(check.tuned_s)
        result["output_difference"] = check.difference
    return result | (kernel_result(job) if isinstance(job, KernelJob) else {})


def kernel_results(job: ModelJob) -> dict[str, Any]:
    """Per task key: what its kernel took before and after, and what was decided about it."""
    if job.tuning is None or job.finish is None:
        return {}
    return {t.task.key: _kernel_result(job, t) for t in job.tuning.tasks}


def _kernel_result(job: ModelJob, progress: TaskProgress) -> dict[str, Any]:
    assert job.finish is not None
    verdict = job.finish.verdicts[progress.task.key]
    used = verdict.chosen is not None
    return {
        "before_s": verdict.default_s,
        "after_s": verdict.used_s,
        "trials": len(progress.trials),
        "used": used,
        "note": verdict.note,
    }


def failures(job: ModelJob) -> dict[str, int]:
    """How many trials failed, by kind."""
    counts: dict[str, int] = {}
    for progress in job.tuning.tasks if job.tuning else ():
        for kind, count in progress.failures.items():
            counts[kind.value] = counts.get(kind.value, 0) + count
    return counts


def schedules(job: ModelJob) -> list[dict[str, Any]]:
    """The schedule used for each kernel and where it came from, for the bundle."""
    if job.tuning is None or job.finish is None:
        return []
    rows = []
    for progress in job.tuning.tasks:
        chosen = job.finish.verdicts[progress.task.key].chosen
        if chosen is not None:
            candidate = chosen.trial.candidate
            row = {"task": progress.task.key, "name": progress.task.name, "weight": progress.task.weight}
            row |= {"candidate": candidate.key, "origin": candidate.origin, "trace": candidate.configuration}
            rows.append(row)
    return rows


def canary_ratios(job: ModelJob) -> list[list[float]]:
    """The canary's times against its fastest: 1 is undisturbed."""
    songs = job.tuning.canary_s if job.tuning else []
    if not songs:
        return []
    quiet = min(seconds for _, seconds in songs)
    return [[at_s, seconds / quiet] for at_s, seconds in songs]


def interface(job: ModelJob) -> dict[str, Any]:
    """Names, shapes and types of a model's inputs and outputs."""
    assert job.summary is not None
    return {
        "inputs": [asdict(info) for info in job.summary.inputs],
        "outputs": [asdict(info) for info in job.summary.outputs],
    }
