"""Wishes for a run that nobody carries out: they are applied at once, in the store itself."""

from collections.abc import Mapping
from typing import Any

from sqlalchemy import Connection, Row, func, select, update

from tuneloom.store.database.queries import Queries, announce
from tuneloom.store.database.tables.runs import JOBS, RUNS, WISHES
from tuneloom.store.records import EMPTY, JobStatus, Json, RunStatus, WishKind
from tuneloom.store.running.jobs import change_priority

_ENDED = tuple(status.value for status in JobStatus if status.ended)


class WaitingQueries(Queries):
    """Wishes for runs that wait."""

    def change_waiting(self, run: str, kind: WishKind, job: str, body: Mapping[str, Json] = EMPTY) -> bool:
        """Pause, resume, cancel or prioritise a job of a run that waits, at once.

        False, and nothing is changed, if an executor has the run or the job has ended. A run whose
        last job is cancelled ends.
        """
        with self._database.writing() as connection:
            # An executor that is about to take the run skips it while we hold the row, or had it first.
            query = select(RUNS.c.status).where(RUNS.c.id == run).with_for_update()
            if connection.execute(query).scalar() != RunStatus.WAITING.value or _wished(connection, run):
                return False
            row = connection.execute(select(JOBS).where(JOBS.c.id == job, JOBS.c.run == run)).first()
            if row is None or row.status in _ENDED:
                return False
            self._change(connection, row, kind, body)
        return True

    def _change(
        self, connection: Connection, job: Row[Any], kind: WishKind, body: Mapping[str, Json]
    ) -> None:
        match kind:
            case WishKind.PAUSE:
                _set(connection, job.id, status=JobStatus.PAUSED.value)
            case WishKind.UNPAUSE:
                _set(connection, job.id, status=JobStatus.WAITING.value)
                announce(connection)
            case WishKind.CANCEL:
                _set(connection, job.id, status=JobStatus.CANCELLED.value, ended=self._clock())
                self._end_if_done(connection, job.run)
            case WishKind.PRIORITY:
                change_priority(connection, job, int(body["priority"]))
            case WishKind.ADD:
                raise ValueError("a job is added with add_job")

    def _end_if_done(self, connection: Connection, run: str) -> None:
        query = select(func.count()).where(JOBS.c.run == run, JOBS.c.status.not_in(_ENDED))
        if not connection.execute(query).scalar_one():
            change = {"status": RunStatus.FINISHED.value, "message": "", "ended": self._clock()}
            connection.execute(update(RUNS).where(RUNS.c.id == run).values(**change))


def _wished(connection: Connection, run: str) -> bool:
    """Whether somebody wanted something before us, when an executor had the run: wishes keep their order."""
    query = select(WISHES.c.number).where(WISHES.c.run == run, WISHES.c.applied.is_(None))
    return connection.execute(query.where(WISHES.c.kind != WishKind.ADD.value).limit(1)).first() is not None


def _set(connection: Connection, job: str, **columns: Any) -> None:
    connection.execute(update(JOBS).where(JOBS.c.id == job).values(**columns))
