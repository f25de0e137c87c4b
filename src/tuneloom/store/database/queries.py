"""What the parts of the store share: the database, the clock, inserting once, and fencing.

Fencing: what an executor writes is refused once another has taken its run over.
"""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any, TypeVar

from sqlalchemy import ColumnElement, Connection, Row, Select, Table, select, text
from sqlalchemy.dialects import postgresql, sqlite

from tuneloom.errors import LeaseLost
from tuneloom.store.database.connections import Database
from tuneloom.store.database.tables import LEASES
from tuneloom.store.records import Lease


def require_held(connection: Connection, lease: Lease) -> None:
    """Raise LeaseLost unless this lease still stands; the row can't change hands until we commit."""
    query = select(LEASES.c.epoch).where(is_lease(lease)).with_for_update(read=True)
    if connection.execute(query).first() is None:
        raise taken_over(lease.run)


def lost_among(connection: Connection, leases: Collection[Lease]) -> set[str]:
    """The runs of those leases that stand no more; the others can't change hands until we commit.

    Rows are locked in the order of their names, as they are wherever several are.
    """
    query = select(LEASES.c.run, LEASES.c.epoch).where(LEASES.c.run.in_([lease.run for lease in leases]))
    rows = connection.execute(query.order_by(LEASES.c.run).with_for_update(read=True))
    standing = {(row.run, row.epoch) for row in rows}
    return {lease.run for lease in leases if (lease.run, lease.epoch) not in standing}


def is_lease(lease: Lease) -> Any:
    """The condition that finds the row of this very lease."""
    return (LEASES.c.run == lease.run) & (LEASES.c.epoch == lease.epoch)


def taken_over(run: str) -> LeaseLost:
    """The error for an executor that lost a run."""
    return LeaseLost(
        f"run {run} was taken over by another executor, because this one was not heard of in time", run
    )


Clock = Callable[[], float]
Made = TypeVar("Made")


class Queries:
    """Base of the parts; holds no data of its own."""

    def __init__(self, database: Database, clock: Clock) -> None:
        self._database = database
        self._clock = clock
        self._held: dict[str, Lease] = {}

    def _all(self, query: Select[Any]) -> Sequence[Row[Any]]:
        """The rows that a query finds."""
        with self._database.reading() as connection:
            return connection.execute(query).all()

    def _found(self, query: Select[Any], made: Callable[[Row[Any]], Made]) -> Made | None:
        """What is made of the first row that a query finds; None if it finds none."""
        rows = self._all(query.limit(1))
        return made(rows[0]) if rows else None

    def _value(self, query: Select[Any]) -> Any:
        """The one value that a query finds."""
        return self._all(query)[0][0]

    def _guard(self, connection: Connection, run: str) -> None:
        """Raise LeaseLost if this store held the run's lease and another has it now."""
        if run in self._held:
            require_held(connection, self._held[run])

    def _lost(self, connection: Connection, runs: Iterable[str]) -> set[str]:
        """Those runs whose leases this store held and another has now."""
        held = [self._held[run] for run in runs if run in self._held]
        return lost_among(connection, held) if held else set()


def given(column: ColumnElement[Any], value: object) -> list[ColumnElement[bool]]:
    """The condition that a column has this value; none if it is None."""
    return [] if value is None else [column == value]


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
    """Insert those rows, all of the same columns, that no unique column has already, without asking which.

    They go to the driver as they are: with short rows, SQLAlchemy takes longer than the database.
    """
    if rows:
        mark = "?" if connection.dialect.name == "sqlite" else "%s"
        columns = tuple(rows[0])
        what = f"{table.name} ({', '.join(columns)}) VALUES ({', '.join([mark] * len(columns))})"
        values = [tuple(map(row.__getitem__, columns)) for row in rows]
        connection.exec_driver_sql(f"INSERT INTO {what} ON CONFLICT DO NOTHING", values)


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
