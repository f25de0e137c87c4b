"""What people watch: the audit log, the spans of a run as they come, failed trials, and devices over time."""

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from sqlalchemy import Connection, Row, insert, select

from tuneloom.store.database.encoding import from_json, from_row, to_json
from tuneloom.store.database.queries import Queries, given
from tuneloom.store.database.tables import AUDIT, JOBS, NOTES, SPANS, TRIALS
from tuneloom.store.records import Json
from tuneloom.store.tenancy.records import AuditEntry, DeviceNotes


class AuditQueries(Queries):
    """What was done by whom; append-only."""

    def add_audit(self, entry: AuditEntry) -> None:
        """Append an entry with the present time."""
        with self._database.writing() as connection:
            insert_entry(connection, entry, self._clock())

    def audit(
        self,
        tenant: str | None = None,
        *,
        subject: str | None = None,
        before: int | None = None,
        limit: int = 50,
    ) -> list[AuditEntry]:
        """A page of entries, newest first; `subject` is what something was done to."""
        query = select(AUDIT).order_by(AUDIT.c.number.desc()).limit(limit)
        query = query.where(*given(AUDIT.c.tenant, tenant), *given(AUDIT.c.subject, subject))
        if before is not None:
            query = query.where(AUDIT.c.number < before)
        return [_entry(row) for row in self._all(query)]


def insert_entry(connection: Connection, entry: AuditEntry, now: float) -> None:
    """Add a line inside the caller's transaction."""
    row = asdict(entry) | {"at": now, "detail": to_json(dict(entry.detail))}
    del row["number"]
    connection.execute(insert(AUDIT).values(**row))


def _entry(row: Row[Any]) -> AuditEntry:
    return from_row(AuditEntry, row, detail=from_json(row.detail))


_OF_SPAN = ("id", "resource", "kind", "task", "start_s", "end_s", "ready_s", "slots")
_OF_FAILURE = ("id", "task_key", "outcome", "message", "created")
_TOLD = ("resources", "canary")


class WatchQueries(Queries):
    """What people watch while jobs run, and afterwards."""

    def spans_after(self, run: str, after: int, limit: int) -> list[dict[str, Json]]:
        """Spans of a run written after the one with this id, as small plain data."""
        query = select(*(SPANS.c[name] for name in _OF_SPAN)).where(SPANS.c.run == run, SPANS.c.id > after)
        return [dict(row._mapping) for row in self._all(query.order_by(SPANS.c.id).limit(limit))]

    def failed_trials(self, job: str, limit: int) -> list[dict[str, Json]]:
        """The trials of a job that failed, with their messages, newest first."""
        failed = (TRIALS.c.job == job) & TRIALS.c.best_s.is_(None)
        query = select(*(TRIALS.c[name] for name in _OF_FAILURE)).where(failed)
        return [dict(row._mapping) for row in self._all(query.order_by(TRIALS.c.id.desc()).limit(limit))]

    def device_notes(self, limit: int) -> list[DeviceNotes]:
        """What the jobs that started last noted about devices, newest first."""
        recent = select(JOBS.c.run, JOBS.c.started, JOBS.c.spec).where(JOBS.c.started.is_not(None))
        recent = recent.order_by(JOBS.c.started.desc()).limit(limit)
        with self._database.reading() as connection:
            jobs = connection.execute(recent).all()
            wanted = NOTES.c.run.in_({job.run for job in jobs}) & NOTES.c.name.in_(_TOLD)
            notes: dict[str, dict[str, Any]] = {}
            for note in connection.execute(select(NOTES).where(wanted)):
                notes.setdefault(note.run, {})[note.name] = from_json(note.content)
        return [_noted(job.started, from_json(job.spec), notes[job.run]) for job in jobs if job.run in notes]


def _noted(began: float, spec: Mapping[str, Any], notes: Mapping[str, Any]) -> DeviceNotes:
    return DeviceNotes(
        began=began,
        device_key=str(spec.get("device_key", "")),
        resources=tuple(notes.get("resources", ())),
        canary=tuple((float(at_s), float(ratio)) for at_s, ratio in notes.get("canary", ())),
    )
