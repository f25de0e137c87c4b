"""What executors note about runs: spans, events, and what runs look like."""

from collections.abc import Mapping, Sequence
from typing import Any

from sqlalchemy import Connection, func, select

from tuneloom.scheduling.journal import EventRecord
from tuneloom.store.database.encoding import from_json, from_row, printable, to_json
from tuneloom.store.database.queries import Queries, insert_new, replace_all
from tuneloom.store.database.tables import EVENTS, NOTES, SPANS, VIEWS
from tuneloom.store.records import Json, Page, SpanRecord


class LogQueries(Queries):
    """What happened when; append-only and written in batches."""

    def clock_of(self, run: str) -> float:
        """When the last span of a run ended; 0 without one."""
        query = select(func.coalesce(func.max(SPANS.c.end_s), 0.0)).where(SPANS.c.run == run)
        return float(self._value(query))

    def spans(self, run: str) -> list[SpanRecord]:
        """All spans of a run by their start."""
        query = select(SPANS).where(SPANS.c.run == run).order_by(SPANS.c.start_s, SPANS.c.id)
        return [from_row(SpanRecord, row) for row in self._all(query)]

    def events(self, run: str) -> list[EventRecord]:
        """The core's log in the order in which it was written."""
        query = select(EVENTS).where(EVENTS.c.run == run).order_by(EVENTS.c.id)
        return [from_row(EventRecord, row, body=from_json(row.body)) for row in self._all(query)]

    def write_pages(self, pages: Sequence[Page]) -> list[str]:
        """Write what was noted about several runs in one transaction; none at all if all pages are blank.

        Returns the runs that other executors have taken over, of which nothing is written.
        """
        written = [page for page in pages if not page.blank]
        if not written:
            return []
        with self._database.writing() as connection:
            lost = self._lost(connection, [page.run for page in written])
            self._write(connection, [page for page in written if page.run not in lost])
        return sorted(lost)

    def _write(self, connection: Connection, pages: Sequence[Page]) -> None:
        spans = [_span_row(page.run, span, page.shift_s) for page in pages for span in page.spans]
        events = [_event_row(page.run, event) for page in pages for event in page.events]
        notes = [_note_row(page.run, *note) for page in pages for note in page.notes.items()]
        now = self._clock()
        views = [_view_row(page, now) for page in pages if page.view is not None]
        insert_new(connection, SPANS, spans)
        insert_new(connection, EVENTS, events)
        replace_all(connection, NOTES, notes, ("run", "name"))
        replace_all(connection, VIEWS, views, ("run",))

    def view(self, run: str) -> Mapping[str, Json] | None:
        """What the run looked like last."""
        query = select(VIEWS.c.content).where(VIEWS.c.run == run)
        return self._found(query, lambda row: from_json(row.content))


def _note_row(run: str, name: str, value: Json) -> dict[str, Any]:
    return {"run": run, "name": printable(name), "content": to_json(value)}


def _view_row(page: Page, now: float) -> dict[str, Any]:
    return {"run": page.run, "updated": now, "content": to_json(dict(page.view or {}))}


def _event_row(run: str, event: EventRecord) -> dict[str, Any]:
    return {"run": run, "at_s": event.at_s, "kind": event.kind, "body": to_json(event.body)}


def _span_row(run: str, span: SpanRecord, shift_s: float) -> dict[str, Any]:
    return {
        "run": run,
        "job": span.job,
        "task": span.task,
        "kind": span.kind,
        "resource": span.resource,
        "slots": span.slots,
        "ready_s": None if span.ready_s is None else span.ready_s + shift_s,
        "start_s": span.start_s + shift_s,
        "end_s": span.end_s + shift_s,
    }
