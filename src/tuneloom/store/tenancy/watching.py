"""What people watch: the spans of a run as they come, failed trials, and devices over time."""

from collections.abc import Mapping
from typing import Any

from sqlalchemy import select

from tuneloom.store.database.encoding import from_json
from tuneloom.store.database.queries import Queries
from tuneloom.store.database.tables.runs import JOBS, NOTES, SPANS, TRIALS
from tuneloom.store.records import Json
from tuneloom.store.tenancy.records import DeviceNotes

_OF_SPAN = ("id", "resource", "kind", "task", "start_s", "end_s", "ready_s", "slots")
_OF_FAILURE = ("id", "task_key", "outcome", "message", "created")
_TOLD = ("resources", "canary")


class WatchQueries(Queries):
    """What people watch while jobs run, and afterwards."""

    def spans_after(self, run: str, after: int, limit: int) -> list[dict[str, Json]]:
        """Spans of a run written after the one with this id, as small plain data."""
        query = select(*(SPANS.c[name] for name in _OF_SPAN)).where(SPANS.c.run == run, SPANS.c.id > after)
        with self._database.reading() as connection:
            rows = connection.execute(query.order_by(SPANS.c.id).limit(limit)).mappings()
            return [dict(row) for row in rows]

    def failed_trials(self, job: str, limit: int) -> list[dict[str, Json]]:
        """The trials of a job that failed, with their messages, newest first."""
        failed = (TRIALS.c.job == job) & TRIALS.c.best_s.is_(None)
        query = select(*(TRIALS.c[name] for name in _OF_FAILURE)).where(failed)
        with self._database.reading() as connection:
            rows = connection.execute(query.order_by(TRIALS.c.id.desc()).limit(limit)).mappings()
            return [dict(row) for row in rows]

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
