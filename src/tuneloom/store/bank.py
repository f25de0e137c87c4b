"""All trials together: the bank that later jobs draw on."""

from collections.abc import Iterator, Sequence
from typing import Any

from sqlalchemy import ColumnElement, Connection, Row, Select, delete, distinct, func, select

from tuneloom.errors import StoreError
from tuneloom.store.encoding import unpack
from tuneloom.store.queries import Queries
from tuneloom.store.records import BankRow, RunStatus, TrialRecord, WorkloadRecord
from tuneloom.store.schema import JOBS, PROVENANCES, RUNS, TRIALS, WORKLOADS
from tuneloom.store.trial_rows import RECORDS, readable

PAGE = 1000
MEASURED = TRIALS.c.best_s.is_not(None)
FASTEST = (TRIALS.c.best_s, TRIALS.c.id)


class BankQueries(Queries):
    """The part of `TrialStore` that looks across jobs."""

    def best_trials(
        self, kernel_class: str, family: str, limit: int, *, device_key: str | None = None
    ) -> list[TrialRecord]:
        of_class = (TRIALS.c.kernel_class == kernel_class) & (TRIALS.c.family == family)
        query = RECORDS.where(of_class & MEASURED).order_by(*FASTEST).limit(limit)
        if device_key is not None:
            query = query.where(PROVENANCES.c.device_key == device_key)
        with self._database.reading() as connection:
            return list(readable(connection.execute(query)))

    def workload_trials(self, task_key: str, family: str, limit: int) -> list[TrialRecord]:
        with self._database.reading() as connection:
            return _readable_fastest(connection, task_key, family, limit)

    def donors(self, kernel_class: str, family: str, per_workload: int) -> list[TrialRecord]:
        with self._database.reading() as connection:
            found: list[TrialRecord] = []
            for key in sorted({workload.key for workload in _workloads(connection, kernel_class, family)}):
                found += _readable_fastest(connection, key, family, per_workload)
            return found

    def workloads(self, kernel_class: str, family: str) -> list[WorkloadRecord]:
        with self._database.reading() as connection:
            return _workloads(connection, kernel_class, family)

    def kernel_classes(self, family: str) -> list[str]:
        query = select(WORKLOADS.c.kernel_class).where(WORKLOADS.c.family == family).distinct()
        with self._database.reading() as connection:
            return sorted(connection.execute(query).scalars())

    def workload(self, task_key: str, tvm_version: str | None = None) -> WorkloadRecord | None:
        query = select(WORKLOADS).where(WORKLOADS.c.task_key == task_key)
        if tvm_version is not None:
            query = query.where(WORKLOADS.c.tvm_version == tvm_version)
        with self._database.reading() as connection:
            row = connection.execute(query.order_by(WORKLOADS.c.number.desc()).limit(1)).first()
            return None if row is None else _workload(row, unpack(row.payload))

    def bank(self) -> list[BankRow]:
        groups = (TRIALS.c.kernel_class, TRIALS.c.family)
        counts = (func.count(distinct(TRIALS.c.task_key)), func.count(TRIALS.c.best_s), func.count())
        with self._database.reading() as connection:
            rows = connection.execute(select(*groups, *counts).group_by(*groups).order_by(*groups)).all()
        return [_bank_row(*row) for row in rows]

    def all_trials(self, family: str | None = None) -> Iterator[TrialRecord]:
        wanted: ColumnElement[bool] = TRIALS.c.id > 0
        if family is not None:
            wanted = wanted & (TRIALS.c.family == family)
        seen = 0
        while page := self._page(wanted, seen):
            yield from readable(page)
            seen = page[-1].id

    def prune_bank(self, keep_per_workload: int) -> int:
        if keep_per_workload < 0:
            raise StoreError(f"can't keep {keep_per_workload} records per workload: give 0 or more")
        with self._database.writing() as connection:
            return connection.execute(
                delete(TRIALS).where(TRIALS.c.id.in_(_spare(keep_per_workload)))
            ).rowcount

    def _page(self, wanted: ColumnElement[bool], seen: int) -> Sequence[Row[Any]]:
        query = RECORDS.where(wanted & (TRIALS.c.id > seen)).order_by(TRIALS.c.id).limit(PAGE)
        with self._database.reading() as connection:
            return connection.execute(query).all()


def _readable_fastest(connection: Connection, task_key: str, family: str, limit: int) -> list[TrialRecord]:
    """The fastest records that can be read; damaged ones take no other's place."""
    found: list[TrialRecord] = []
    looked = 0
    while len(found) < limit:
        rows = connection.execute(_fastest(task_key, family, limit).offset(looked)).all()
        found += readable(rows)
        looked += len(rows)
        if len(rows) < limit:
            break
    return found[:limit]


def _fastest(task_key: str, family: str, limit: int) -> Select[Any]:
    of_workload = (TRIALS.c.task_key == task_key) & (TRIALS.c.family == family)
    return RECORDS.where(of_workload & MEASURED).order_by(*FASTEST).limit(limit)


def _spare(keep: int) -> Select[Any]:
    """Ids of the trials of ended runs beyond the fastest `keep` of all runs, and of failures."""
    order = func.row_number().over(partition_by=(TRIALS.c.task_key, TRIALS.c.family), order_by=FASTEST)
    rank = select(TRIALS.c.id, order.label("place")).where(MEASURED).subquery()
    kept = select(rank.c.id).where(rank.c.place <= keep)
    ended = (
        select(JOBS.c.id).join(RUNS, JOBS.c.run == RUNS.c.id).where(RUNS.c.status == RunStatus.FINISHED.value)
    )
    return select(TRIALS.c.id).where(TRIALS.c.job.in_(ended), TRIALS.c.id.not_in(kept))


def _workloads(connection: Connection, kernel_class: str, family: str) -> list[WorkloadRecord]:
    columns = [column for column in WORKLOADS.c if column.name != "payload"]
    of_class = (WORKLOADS.c.kernel_class == kernel_class) & (WORKLOADS.c.family == family)
    rows = connection.execute(select(*columns).where(of_class).order_by(WORKLOADS.c.number))
    return [_workload(row, b"") for row in rows]


def _workload(row: Row[Any], payload: bytes) -> WorkloadRecord:
    return WorkloadRecord(
        key=row.task_key,
        name=row.name,
        kernel_class=row.kernel_class,
        shapes=row.shapes,
        gflop=row.gflop,
        family=row.family,
        target=row.target,
        tvm_version=row.tvm_version,
        payload=payload,
    )


def _bank_row(kernel_class: str, family: str, workloads: int, measured: int, total: int) -> BankRow:
    return BankRow(
        kernel_class=kernel_class,
        family=family,
        workloads=workloads,
        measured=measured,
        failed=total - measured,
    )
