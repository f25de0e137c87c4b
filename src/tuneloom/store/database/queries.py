"""What the parts of the store share: the database, the clock, and inserting once."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from sqlalchemy import Connection, Table, text
from sqlalchemy.dialects import postgresql, sqlite

from tuneloom.store.database.connections import Database
from tuneloom.store.database.fencing import lost_among, require_held
from tuneloom.store.records import Lease

Clock = Callable[[], float]


class Queries:
    """Base of the parts; holds no data of its own."""

    def __init__(self, database: Database, clock: Clock) -> None:
        self._database = database
        self._clock = clock
        self._held: dict[str, Lease] = {}

    def _guard(self, connection: Connection, run: str) -> None:
        """Raise LeaseLost if this store held the run's lease and another has it now."""
        if run in self._held:
            require_held(connection, self._held[run])

    def _lost(self, connection: Connection, runs: Iterable[str]) -> set[str]:
        """Those runs whose leases this store held and another has now."""
        held = [self._held[run] for run in runs if run in self._held]
        return lost_among(connection, held) if held else set()


CHANNEL = "tuneloom_news"


def announce(connection: Connection) -> None:
    """Tell all who listen that there is something to do, once the transaction is committed."""
    if connection.dialect.name == "postgresql":
        connection.execute(text(f"NOTIFY {CHANNEL}"))


def insert_once(connection: Connection, table: Table, row: Mapping[str, Any]) -> bool:
    """Insert a row unless a unique column has it already; says whether it was new."""
    make = sqlite.insert if connection.dialect.name == "sqlite" else postgresql.insert
    statement: Any = make(table).values(**row)
    new = statement.on_conflict_do_nothing().returning(*table.primary_key)
    return connection.execute(new).first() is not None


def insert_all_once(connection: Connection, table: Table, rows: Sequence[Mapping[str, Any]]) -> int:
    """Insert those rows that no unique column has already; says how many were new."""
    make = sqlite.insert if connection.dialect.name == "sqlite" else postgresql.insert
    statement: Any = make(table).on_conflict_do_nothing().returning(*table.primary_key)
    return len(connection.execute(statement, list(rows)).all()) if rows else 0


def insert_new(connection: Connection, table: Table, rows: Sequence[Mapping[str, Any]]) -> None:
    """Insert those rows that no unique column has already, without asking which: the fastest way."""
    make = sqlite.insert if connection.dialect.name == "sqlite" else postgresql.insert
    if rows:
        connection.execute(make(table).on_conflict_do_nothing(), list(rows))


def insert_or_replace(
    connection: Connection, table: Table, row: Mapping[str, Any], unique: tuple[str, ...]
) -> None:
    """Insert a row, or change the other columns of the one with these unique columns."""
    replace_all(connection, table, [row], unique)


def replace_all(
    connection: Connection, table: Table, rows: Sequence[Mapping[str, Any]], unique: tuple[str, ...]
) -> None:
    """Insert rows of the same columns, or change the other columns of those that are there."""
    if not rows:
        return
    make = sqlite.insert if connection.dialect.name == "sqlite" else postgresql.insert
    statement: Any = make(table)
    changed = {name: statement.excluded[name] for name in rows[0] if name not in unique}
    statement = statement.on_conflict_do_update(index_elements=list(unique), set_=changed)
    connection.execute(statement, list(rows))
