"""The audit log in the database."""

from dataclasses import asdict
from typing import Any

from sqlalchemy import Connection, Row, insert, select

from tuneloom.store.database.encoding import from_json, from_row, to_json
from tuneloom.store.database.queries import Queries
from tuneloom.store.database.tables.tenancy import AUDIT
from tuneloom.store.tenancy.records import AuditEntry


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
        if tenant is not None:
            query = query.where(AUDIT.c.tenant == tenant)
        if subject is not None:
            query = query.where(AUDIT.c.subject == subject)
        if before is not None:
            query = query.where(AUDIT.c.number < before)
        with self._database.reading() as connection:
            return [_entry(row) for row in connection.execute(query)]


def insert_entry(connection: Connection, entry: AuditEntry, now: float) -> None:
    """Add a line inside the caller's transaction."""
    row = asdict(entry) | {"at": now, "detail": to_json(dict(entry.detail))}
    del row["number"]
    connection.execute(insert(AUDIT).values(**row))


def _entry(row: Row[Any]) -> AuditEntry:
    return from_row(AuditEntry, row, detail=from_json(row.detail))
