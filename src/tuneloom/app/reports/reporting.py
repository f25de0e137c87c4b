"""From the store to a report: which note, plan and result a page is made of.

| place | what the report reads there |
| --- | --- |
| note `resources` | a list of `{"name", "slots", "device_key"}` |
| note `canary` | a list of `[at_s, ratio]`: the canary kernel against its quiet time |
| any other note | a fact for people |
| a job's spec | `device_key`, `target`, and `tuner`, `batch`, `seed`, `layout` as facts |
| the result of a job that tuned a kernel | `best`, `best_s`, `validity`: see `kinds/kernel/reporting` |
| a job's result | `latency_before_s`, `latency_after_s`, `kernels`: `{task key: {"before_s", "after_s"}}` |
| a task's plan | `representative`: a task key; `gifts`: a list of `{"donor", "source", "after_s", "used"}` |

All of it may be missing: the report then leaves that part out.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from tuneloom.app.bundles.folders import write_whole
from tuneloom.app.kinds.finding import FALLBACK, kind_named
from tuneloom.app.reports.notes import disturbed_facts, facts_of, measuring_facts, resources_of, shared_facts
from tuneloom.errors import InputError
from tuneloom.model.rival import Rival
from tuneloom.report import (
    DriftPoint,
    Gift,
    ModelResult,
    ReportData,
    ResourceSpan,
    SearchStory,
    ShownCluster,
    TaskResult,
    TaskTrial,
    Validity,
    failure_counts,
    progress_of,
    render_report,
    story_of,
    task_result,
)
from tuneloom.store import (
    JobRecord,
    PlannedTask,
    Provenance,
    RunRecord,
    RunStatus,
    Store,
    TrialRecord,
    open_existing,
)

_TELLING = 5
"""Trials with reasons from which on a search is shown; kernels of models have few beside first guesses."""


def known_runs(place: str | None = None, limit: int | None = None) -> list[RunRecord]:
    """The runs of a store, newest first."""
    with open_existing(place) as store:
        return store.runs(limit)


def write_report(run: str, path: Path, place: str | None = None) -> str:
    """Write the page about a run to a file, all of it or nothing; returns the run's whole id.

    Raises StoreError if there is no such run, OutputError if the file can't be written.
    """
    with open_existing(place) as store:
        data = report_data(store, run)
    write_whole(path, render_report(data), "choose another place with -o")
    return data.run


def report_data(store: Store, name: str) -> ReportData:
    """Everything the store knows about a run that a report shows."""
    run = store.run(name)
    jobs, notes = store.jobs(run.id), store.notes(run.id)
    tasks = {job.id: store.tasks(job.id) for job in jobs}
    trials = {job.id: store.trials(job.id) for job in jobs}
    results = {job.id: _task_results(job, tasks[job.id], trials[job.id]) for job in jobs}
    spans = tuple(ResourceSpan(**asdict(span)) for span in store.spans(run.id))
    all_tasks = [planned for job in jobs for planned in tasks[job.id]]
    return ReportData(
        run=run.id,
        command=run.command,
        status=run.status.value,
        message=run.message,
        created=run.created,
        seconds=_seconds(run, spans),
        models=tuple(_model(run, job, results[job.id], trials[job.id]) for job in jobs),
        tasks=tuple(result for job in jobs for result in results[job.id]),
        resources=resources_of(notes.get("resources")),
        spans=spans,
        failures=failure_counts(record.trial for job in jobs for record in trials[job.id]),
        clusters=_clusters(all_tasks),
        gifts=tuple(_gifts(all_tasks, [r for job in jobs for r in results[job.id]])),
        validity=tuple(filter(None, (_validity(job, trials[job.id]) for job in jobs))),
        stories=tuple(story for job in jobs for story in _stories(job, tasks[job.id], trials[job.id])),
        facts=(
            *measuring_facts([job.spec for job in jobs], _provenances(trials)),
            *disturbed_facts(notes.get("resources")),
            *shared_facts(notes.get("resources")),
            *facts_of(notes),
        ),
        drift=tuple(DriftPoint(at_s=at_s, ratio=ratio) for at_s, ratio in notes.get("canary", ())),
        names={job.id: job.name for job in jobs} | {p.task.key: p.task.name for p in all_tasks},
    )


def _provenances(trials: Mapping[str, Sequence[TrialRecord]]) -> list[Provenance]:
    return list(dict.fromkeys(record.provenance for records in trials.values() for record in records))


def _seconds(run: RunRecord, spans: Sequence[ResourceSpan]) -> float | None:
    """How long the run took; the pauses of a resumed run don't count where spans tell better."""
    if spans:
        return max(span.end_s for span in spans)
    return run.ended - run.created if run.ended else None


def _task_results(
    job: JobRecord, tasks: Sequence[PlannedTask], records: Sequence[TrialRecord]
) -> list[TaskResult]:
    final: Mapping[str, Any] = job.result.get("kernels", {})
    results = []
    for planned in tasks:
        trials = [record.trial for record in records if record.task_key == planned.task.key]
        times = final.get(planned.task.key, {})
        results.append(
            task_result(
                job.id,
                planned.task,
                trials,
                before_s=times.get("before_s"),
                after_s=times.get("after_s"),
                decided=bool(times),
            )
        )
    return results


def _model(
    run: RunRecord, job: JobRecord, results: Sequence[TaskResult], records: Sequence[TrialRecord]
) -> ModelResult:
    tried = [TaskTrial(task_key=record.task_key, trial=record.trial) for record in records]
    cut_short = run.status is RunStatus.INTERRUPTED and not job.status.ended
    provenance = records[0].provenance if records else None
    rival = Rival.told_by(job.result)
    return ModelResult(
        job=job.id,
        name=job.name,
        status="interrupted" if cut_short else job.status.value,
        before_s=job.result.get("latency_before_s"),
        after_s=job.result.get("latency_after_s", job.result.get("best_s")),
        device=provenance.device_key if provenance else str(job.spec.get("device_key", "")),
        target=provenance.target if provenance else str(job.spec.get("target", "")),
        trials=len(records),
        failed=sum(record.seconds is None for record in records),
        seconds=job.ended - job.started if job.ended and job.started else None,
        best=_best_of(job),
        own_runtime=rival.name,
        own_runtime_s=rival.alone_s,
        beside_s=rival.bundle_s,
        left=_left(job),
        progress=progress_of(results, tried),
        energy_j=job.result.get("energy_j"),
        layout=job.result.get("layout", {}).get("layout", ""),
    )


def _left(job: JobRecord) -> str:
    """How much of a model is left to its own runtime."""
    left = job.result.get("left_to_onnxruntime")
    return "" if left is None else "whole" if left["whole"] else "parts"


def _best_of(job: JobRecord) -> str:
    """The best knobs of a kernel, for people; empty for a model."""
    return ", ".join(f"{knob} = {value}" for knob, value in job.result.get("best", {}).items())


def _validity(job: JobRecord, records: Sequence[TrialRecord]) -> Validity | None:
    """The section of the job's kind; none for a kind that is not installed any more."""
    try:
        return kind_named(str(job.spec.get("tuner", FALLBACK))).validity(job, records)
    except InputError:
        return None


def _stories(
    job: JobRecord, tasks: Sequence[PlannedTask], records: Sequence[TrialRecord]
) -> list[SearchStory]:
    """The searches of a job that have more to tell than a few trials, the longest first."""
    found: list[SearchStory | None] = []
    for planned in tasks:
        trials = [record.trial for record in records if record.task_key == planned.task.key]
        found.append(story_of(job.id, planned.task.key, planned.task.name, trials))
    told = [story for story in found if story is not None and len(story.choices) >= _TELLING]
    return sorted(told, key=lambda story: -story.trials)


def _clusters(tasks: Sequence[PlannedTask]) -> tuple[ShownCluster, ...]:
    members: dict[str, list[str]] = {}
    for planned in tasks:
        if representative := planned.plan.get("representative"):
            members.setdefault(representative, []).append(planned.task.key)
    return tuple(ShownCluster(representative=key, members=tuple(found)) for key, found in members.items())


def _gifts(tasks: Sequence[PlannedTask], results: Sequence[TaskResult]) -> list[Gift]:
    before = {result.key: result.before_s for result in results}
    return [
        Gift(
            donor=gift["donor"],
            receiver=planned.task.key,
            source=gift.get("source", ""),
            before_s=before.get(planned.task.key),
            after_s=gift.get("after_s"),
            used=bool(gift.get("used")),
        )
        for planned in tasks
        for gift in planned.plan.get("gifts", ())
    ]
