"""All trials together: the bank that later jobs draw on."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from sqlalchemy import ColumnElement, Connection, Row, Select, delete, distinct, func, or_, select

from tuneloom.errors import StoreError
from tuneloom.store.bank.trial_rows import RECORDS, readable, readable_by
from tuneloom.store.database.encoding import from_row, unpack
from tuneloom.store.database.queries import Queries, given
from tuneloom.store.database.tables import JOBS, PROVENANCES, RUNS, TRIALS, WORKLOADS
from tuneloom.store.records import BankRow, KnownKernel, RunStatus, TrialRecord, WorkloadRecord

PAGE = 1000
MEASURED = TRIALS.c.best_s.is_not(None)
FASTEST = (TRIALS.c.best_s, TRIALS.c.id)


class BankQueries(Queries):
    """What trials of all jobs tell."""

    def workload_trials(
        self, task_key: str, family: str, limit: int, *, reader: str | None = None
    ) -> list[TrialRecord]:
        """The fastest measured records of one workload, of all jobs, fastest first.

        With a `reader`, here and below, only what that tenant may learn from: its own records, those
        that no tenant made, and those of tenants who share theirs.
        """
        with self._database.reading() as connection:
            return _readable_fastest(connection, task_key, family, limit, reader)

    def donors(self, kernel_class: str, family: str, per_workload: int) -> list[TrialRecord]:
        """The fastest few records of every workload of a class, workloads in the order of their keys."""
        with self._database.reading() as connection:
            found: list[TrialRecord] = []
            for key in sorted({workload.key for workload in _workloads(connection, kernel_class, family)}):
                found += _readable_fastest(connection, key, family, per_workload)
            return found

    def workloads(self, kernel_class: str, family: str, *, reader: str | None = None) -> list[WorkloadRecord]:
        """The workloads of a class on a target family, without payloads; for a reader, those with records."""
        with self._database.reading() as connection:
            return _workloads(connection, kernel_class, family, reader)

    def kernel_classes(self, family: str) -> list[str]:
        """The kernel classes that have a workload on a target family, in alphabetical order."""
        query = select(WORKLOADS.c.kernel_class).where(WORKLOADS.c.family == family).distinct()
        return sorted(row.kernel_class for row in self._all(query))

    def workload(self, task_key: str, tvm_version: str | None = None) -> WorkloadRecord | None:
        """A workload with its payload, of this TVM version or the newest added."""
        query = select(WORKLOADS).where(WORKLOADS.c.task_key == task_key)
        query = query.where(*given(WORKLOADS.c.tvm_version, tvm_version)).order_by(WORKLOADS.c.number.desc())
        return self._found(query, lambda row: _workload(row, unpack(row.payload)))

    def bank(self, *, reader: str | None = None) -> list[BankRow]:
        """What is known, by kernel class and target family."""
        groups = (TRIALS.c.kernel_class, TRIALS.c.family)
        workloads = func.count(distinct(TRIALS.c.task_key)).label("workloads")
        counts = (workloads, func.count(TRIALS.c.best_s).label("measured"), func.count().label("total"))
        query = select(*groups, *counts).where(readable_by(reader)).group_by(*groups).order_by(*groups)
        return [from_row(BankRow, row, failed=row.total - row.measured) for row in self._all(query)]

    def known_kernels(
        self,
        *,
        kernel_class: str | None = None,
        family: str | None = None,
        text: str | None = None,
        after: str = "",
        limit: int = 50,
        reader: str | None = None,
    ) -> list[KnownKernel]:
        """What is known of single kernels, best first per device; a page of `limit` workloads by their keys.

        `text` is a part of the name or of the shapes, `after` the key of the last workload seen.
        """
        best = func.min(TRIALS.c.best_s).label("best_s")
        groups = (TRIALS.c.task_key, TRIALS.c.family, PROVENANCES.c.device_key)
        query = select(*groups, best, func.count().label("measured")).where(MEASURED, readable_by(reader))
        query = query.join(PROVENANCES, PROVENANCES.c.id == TRIALS.c.provenance)
        query = query.where(TRIALS.c.task_key > after, *_wanted(kernel_class, family, text))
        with self._database.reading() as connection:
            keys = query.with_only_columns(TRIALS.c.task_key).distinct().order_by(TRIALS.c.task_key)
            page = list(connection.execute(keys.limit(limit)).scalars())
            rows = connection.execute(query.where(TRIALS.c.task_key.in_(page)).group_by(*groups)).all()
            return _kernels(_described(connection, page), rows)

    def all_trials(self, family: str | None = None) -> Iterator[TrialRecord]:
        """Every record of the bank in the order of commitment, fetched piece by piece (an export)."""
        seen, query = 0, RECORDS.where(*given(TRIALS.c.family, family)).order_by(TRIALS.c.id).limit(PAGE)
        while page := self._all(query.where(TRIALS.c.id > seen)):
            yield from readable(page)
            seen = page[-1].id

    def prune_bank(self, keep_per_workload: int) -> int:
        """Drop all but the fastest records per workload and family, failures too.

        Trials of runs that may still go on are kept. Returns how many were dropped.
        """
        if keep_per_workload < 0:
            raise StoreError(f"can't keep {keep_per_workload} records per workload: give 0 or more")
        with self._database.writing() as connection:
            return connection.execute(
                delete(TRIALS).where(TRIALS.c.id.in_(_spare(keep_per_workload)))
            ).rowcount


def _readable_fastest(
    connection: Connection, task_key: str, family: str, limit: int, reader: str | None = None
) -> list[TrialRecord]:
    """The fastest records that can be read; damaged ones take no other's place."""
    found: list[TrialRecord] = []
    looked = 0
    while len(found) < limit:
        query = _fastest(task_key, family, limit).where(readable_by(reader))
        rows = connection.execute(query.offset(looked)).all()
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


def _workloads(
    connection: Connection, kernel_class: str, family: str, reader: str | None = None
) -> list[WorkloadRecord]:
    columns = [column for column in WORKLOADS.c if column.name != "payload"]
    query = select(*columns).where(WORKLOADS.c.kernel_class == kernel_class, WORKLOADS.c.family == family)
    if reader is not None:
        its = select(TRIALS.c.id).where(TRIALS.c.task_key == WORKLOADS.c.task_key, MEASURED)
        query = query.where(its.where(TRIALS.c.family == family, readable_by(reader)).exists())
    rows = connection.execute(query.order_by(WORKLOADS.c.number))
    return [_workload(row, b"") for row in rows]


def _wanted(kernel_class: str | None, family: str | None, text: str | None) -> list[ColumnElement[bool]]:
    wanted = [*given(TRIALS.c.kernel_class, kernel_class), *given(TRIALS.c.family, family)]
    if text is not None:
        parts = [column.contains(text, autoescape=True) for column in (WORKLOADS.c.name, WORKLOADS.c.shapes)]
        wanted.append(TRIALS.c.task_key.in_(select(WORKLOADS.c.task_key).where(or_(*parts))))
    return wanted


def _described(connection: Connection, keys: Sequence[str]) -> dict[str, Row[Any]]:
    """One row for each of these workloads, the newest if TVM versions differ."""
    columns = [column for column in WORKLOADS.c if column.name != "payload"]
    query = select(*columns).where(WORKLOADS.c.task_key.in_(keys)).order_by(WORKLOADS.c.number)
    return {row.task_key: row for row in connection.execute(query)}


def _kernels(described: Mapping[str, Row[Any]], rows: Sequence[Row[Any]]) -> list[KnownKernel]:
    found = []
    for row in sorted(rows, key=lambda row: (row.task_key, row.family, row.device_key)):
        kernel = described.get(row.task_key)
        if kernel is not None:
            told = {name: getattr(kernel, name) for name in ("name", "kernel_class", "shapes", "gflop")}
            found.append(from_row(KnownKernel, row, key=row.task_key, **told))
    return found


def _workload(row: Row[Any], payload: bytes) -> WorkloadRecord:
    return from_row(WorkloadRecord, row, key=row.task_key, payload=payload)
