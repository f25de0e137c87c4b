"""What others want of a run that somebody carries out: rows, applied once and in order."""

from collections.abc import Mapping
from typing import Any

from sqlalchemy import Connection, Row, func, insert, select, update

from tuneloom.errors import StoreError
from tuneloom.store.database.encoding import from_json, from_row, to_json
from tuneloom.store.database.queries import Queries, announce
from tuneloom.store.database.tables import RUNS, WISHES
from tuneloom.store.records import EMPTY, Json, RunStatus, Wish, WishKind

ENDED = (RunStatus.FINISHED.value, RunStatus.FAILED.value)


class WishQueries(Queries):
    """What others want of a run."""

    def add_wish(
        self, run: str, kind: WishKind, job: str | None = None, body: Mapping[str, Json] = EMPTY
    ) -> Wish:
        """Leave a wish for the run's executor; raises StoreError if the run has ended."""
        with self._database.writing() as connection:
            require_open(connection, run)
            return insert_wish(connection, run, kind, job, body, self._clock())

    def open_wishes(self, *runs: str) -> list[Wish]:
        """Wishes for these runs that were not applied yet, in the order in which they came."""
        query = select(WISHES).where(WISHES.c.run.in_(runs), WISHES.c.applied.is_(None))
        return [_record(row) for row in self._all(query.order_by(WISHES.c.number))]

    def close_wish(self, wish: Wish) -> None:
        """Note that a wish was applied."""
        with self._database.writing() as connection:
            self._guard(connection, wish.run)
            change = update(WISHES).where(WISHES.c.number == wish.number, WISHES.c.applied.is_(None))
            connection.execute(change.values(applied=self._clock()))


def require_open(connection: Connection, run: str) -> None:
    """Lock a run that has not ended until we commit; raises StoreError if it has, or is not there."""
    row = connection.execute(select(RUNS.c.status).where(RUNS.c.id == run).with_for_update()).first()
    if row is None:
        raise StoreError(f"no run {run!r}; `tuneloom runs` lists what there is")
    if row.status in ENDED:
        raise StoreError(f"run {run} is {row.status}; start another with `tuneloom tune`")


def insert_wish(
    connection: Connection, run: str, kind: WishKind, job: str | None, body: Mapping[str, Json], now: float
) -> Wish:
    """Add a wish inside the caller's transaction."""
    row = {"run": run, "job": job, "kind": kind.value, "body": to_json(dict(body)), "created": now}
    announce(connection)
    number = connection.execute(insert(WISHES).values(**row).returning(WISHES.c.number)).scalar_one()
    return _record(connection.execute(select(WISHES).where(WISHES.c.number == number)).one())


def wished(connection: Connection, run: str) -> bool:
    """Whether somebody wants something of a run that was not done yet."""
    query = select(func.count()).where(WISHES.c.run == run, WISHES.c.applied.is_(None))
    return bool(connection.execute(query).scalar_one())


def _record(row: Row[Any]) -> Wish:
    return from_row(Wish, row, kind=WishKind(row.kind), body=from_json(row.body))
