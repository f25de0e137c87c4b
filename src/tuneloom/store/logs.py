"""Spans and events in the database."""

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from sqlalchemy import Row, insert, select

from tuneloom.store.encoding import from_json, to_json
from tuneloom.store.queries import Queries
from tuneloom.store.records import EventRecord, SpanRecord
from tuneloom.store.tables.runs import EVENTS, SPANS


class LogQueries(Queries):
    """The part of a store that `LogStore` describes."""

    def add_spans(self, run: str, spans: Sequence[SpanRecord]) -> None:
        if spans:
            with self._database.writing() as connection:
                self._guard(connection, run)
                connection.execute(insert(SPANS), [{"run": run} | asdict(span) for span in spans])

    def spans(self, run: str) -> list[SpanRecord]:
        query = select(SPANS).where(SPANS.c.run == run).order_by(SPANS.c.start_s, SPANS.c.id)
        with self._database.reading() as connection:
            return [_span(row) for row in connection.execute(query)]

    def log_events(self, run: str, events: Sequence[EventRecord]) -> None:
        if events:
            with self._database.writing() as connection:
                self._guard(connection, run)
                connection.execute(insert(EVENTS), [_event_row(run, event) for event in events])

    def events(self, run: str) -> list[EventRecord]:
        query = select(EVENTS).where(EVENTS.c.run == run).order_by(EVENTS.c.id)
        with self._database.reading() as connection:
            return [
                EventRecord(at_s=row.at_s, kind=row.kind, body=from_json(row.body))
                for row in connection.execute(query)
            ]


def _event_row(run: str, event: EventRecord) -> dict[str, Any]:
    return {"run": run, "at_s": event.at_s, "kind": event.kind, "body": to_json(dict(event.body))}


def _span(row: Row[Any]) -> SpanRecord:
    return SpanRecord(
        job=row.job,
        task=row.task,
        kind=row.kind,
        resource=row.resource,
        start_s=row.start_s,
        end_s=row.end_s,
        ready_s=row.ready_s,
        slots=row.slots,
    )
