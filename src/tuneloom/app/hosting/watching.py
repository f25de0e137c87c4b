"""A job as people follow it: who held which resource when, what happened, and how devices behaved."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from tuneloom.store import AuditEntry, DeviceNotes, Store, SubmittedJob

_MOST_SPANS = 4000
_MOST_ENTRIES = 200
_MOST_JOBS = 200
_MOST_POINTS = 500
_MOST_MESSAGE = 500


@dataclass(frozen=True, slots=True, kw_only=True)
class JobTimeline:
    """Spans in the order in which they were written; times are seconds of the job's own clock."""

    resources: tuple[Mapping[str, Any], ...]
    spans: tuple[Mapping[str, Any], ...]
    complete: bool


def timeline_of(store: Store, run: str, after: int) -> JobTimeline:
    """The resources of a run, and its spans after one; more may follow if it is not complete."""
    spans = store.spans_after(run, after, _MOST_SPANS)
    resources = store.notes(run).get("resources", ())
    return JobTimeline(resources=tuple(resources), spans=tuple(spans), complete=len(spans) < _MOST_SPANS)


@dataclass(frozen=True, slots=True, kw_only=True)
class LogEntry:
    """An event in the history of a job."""

    at: float
    kind: Literal["state", "request", "failure", "device"]
    text: str
    detail: str = ""


def log_of(store: Store, job: SubmittedJob) -> list[LogEntry]:
    """What happened to a job, newest first, as far as it is worth telling."""
    found = [*_states(job), *_requests(store.audit(subject=job.id, limit=_MOST_ENTRIES))]
    found += [*_failures(store, job), *_absences(store, job)]
    return sorted(found, key=lambda entry: -entry.at)[:_MOST_ENTRIES]


def _states(job: SubmittedJob) -> Iterator[LogEntry]:
    yield LogEntry(at=job.created, kind="state", text="submitted")
    if job.started is not None:
        yield LogEntry(at=job.started, kind="state", text="started")
    if job.ended is not None:
        yield LogEntry(
            at=job.ended, kind="state", text=job.status.value, detail=str(job.result.get("failure") or "")
        )


def _requests(entries: Iterable[AuditEntry]) -> Iterator[LogEntry]:
    for entry in entries:
        told = ", ".join(f"{name} {value}" for name, value in entry.detail.items() if name != "model")
        detail = f"token {entry.token}" + (f", {told}" if told else "")
        yield LogEntry(at=entry.at, kind="request", text=entry.action, detail=detail)


def _failures(store: Store, job: SubmittedJob) -> Iterator[LogEntry]:
    names = {planned.task.key: planned.task.name for planned in store.tasks(job.job)}
    for trial in store.failed_trials(job.job, _MOST_ENTRIES):
        where = names.get(trial["task_key"], trial["task_key"])
        kind = str(trial["outcome"]).replace("_", " ")
        yield LogEntry(
            at=trial["created"],
            kind="failure",
            text=f"{kind} in {where}",
            detail=str(trial["message"])[:_MOST_MESSAGE],
        )


def _absences(store: Store, job: SubmittedJob) -> Iterator[LogEntry]:
    for entry in store.notes(job.id).get("resources", ()):
        for left_s, back_s in entry.get("away", ()):
            began, name = job.started or job.created, entry["name"]
            reason = str(entry.get("why_away", ""))
            yield LogEntry(at=began + left_s, kind="device", text=f"{name} was lost", detail=reason)
            if back_s is not None:
                yield LogEntry(at=began + back_s, kind="device", text=f"{name} returned")


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceAbsence:
    """A time without a device; `until` is null while it has not returned."""

    name: str
    since: float
    until: float | None
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceHistory:
    """What jobs noted about the devices with one key; times are seconds since the epoch."""

    key: str
    names: tuple[str, ...] = ()
    last_seen: float = 0.0
    canary: tuple[tuple[float, float], ...] = ()
    absences: tuple[DeviceAbsence, ...] = field(default=())


def device_histories(store: Store) -> list[DeviceHistory]:
    """The devices of recent jobs by key, with their canary and their absences, oldest first."""
    found: dict[str, DeviceHistory] = {}
    for notes in reversed(store.device_notes(_MOST_JOBS)):
        for key, history in _of_job(notes):
            found[key] = _joined(found.get(key, DeviceHistory(key=key)), history)
    return [found[key] for key in sorted(found)]


def _of_job(notes: DeviceNotes) -> Iterator[tuple[str, DeviceHistory]]:
    for entry in notes.resources:
        key = entry.get("device_key")
        if not key:
            continue
        points = notes.canary if key == notes.device_key else ()
        yield (
            str(key),
            DeviceHistory(
                key=str(key),
                names=(str(entry["name"]),),
                last_seen=notes.began + max((at_s for at_s, _ in points), default=0.0),
                canary=tuple((notes.began + at_s, ratio) for at_s, ratio in points),
                absences=tuple(_away(entry, notes.began)),
            ),
        )


def _away(entry: Mapping[str, Any], began: float) -> Iterator[DeviceAbsence]:
    for left_s, back_s in entry.get("away", ()):
        until = None if back_s is None else began + back_s
        reason = str(entry.get("why_away", ""))
        yield DeviceAbsence(name=str(entry["name"]), since=began + left_s, until=until, reason=reason)


def _joined(old: DeviceHistory, new: DeviceHistory) -> DeviceHistory:
    canary = sorted({*old.canary, *new.canary})
    absences = sorted({*old.absences, *new.absences}, key=lambda absence: absence.since)
    return replace(
        old,
        names=tuple(dict.fromkeys((*old.names, *new.names))),
        last_seen=max(old.last_seen, new.last_seen),
        canary=tuple(canary[-_MOST_POINTS:]),
        absences=tuple(absences[-_MOST_POINTS:]),
    )
