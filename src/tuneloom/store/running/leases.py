"""Leases: which executor carries out a run, for as long as its heart beats.

A lease has a holder and an epoch that grows whenever the run changes hands. Every write that
an executor makes for a run is checked against the epoch, so one that was thought dead and
wakes up again can't write any more. Where the process of the holder can be seen, it is asked for
as well: a dead one's run is free at once, a living one's a minute later than elsewhere.
"""

import time
from collections.abc import Collection
from dataclasses import asdict
from typing import Any

from sqlalchemy import Connection, Row, delete, func, select, update

from tuneloom.errors import StoreError
from tuneloom.store.database.encoding import from_row
from tuneloom.store.database.queries import Queries, insert_or_replace, is_lease, taken_over
from tuneloom.store.database.tables import JOBS, LEASES, RUNS
from tuneloom.store.records import Lease, RunStatus
from tuneloom.store.running.claiming import next_waiting, tenants_of
from tuneloom.store.running.owner import Owner, is_alive, this_process

LIVING_S = 60.0
"""So long after its lease has ended, a process of this host that lives but hangs loses its run."""


class LeaseQueries(Queries):
    """Who carries out which run."""

    def take_run(self, run: str, holder: str, ttl_s: float) -> Lease:
        """Make `holder` the executor of a run, for so many seconds; again for its own holder is fine.

        Raises StoreError if another executor lives, or can't be known to be dead yet. From
        then on what this store writes for the run is refused with LeaseLost once another
        has taken it.
        """
        with self._database.writing() as connection:
            row = _locked(connection, run)
            now = self._now(connection)
            _refuse_held(connection, row, holder, now)
            return self._taken(connection, run, holder, now + ttl_s)

    def claim_run(self, holder: str, ttl_s: float, *, beside: Collection[str] | None = None) -> Lease | None:
        """Take a run that waits, or whose executor is gone; None if there is none.

        Tenants take turns by their weights, priority and age decide among a tenant's own. With
        `beside`, only a waiting run of a tenant that has none among these runs is taken.
        """
        with self._database.reading() as connection:  # mostly there is nothing, and nobody has to wait
            if self._claimable(connection, beside, lock=False) is None:
                return None
        with self._database.writing() as connection:
            run = self._claimable(connection, beside, lock=True)
            if run is None:
                return None
            return self._taken(connection, run, holder, self._now(connection) + ttl_s)

    def _claimable(self, connection: Connection, beside: Collection[str] | None, *, lock: bool) -> str | None:
        served = tenants_of(connection, beside) if beside is not None else ()
        waiting = next_waiting(connection, served, lock=lock)
        if waiting is not None or beside is not None:
            return None if waiting is None else str(waiting.id)
        now = self._now(connection)
        free = (
            row.id for row in connection.execute(_begun(lock=lock)).all() if is_free(connection, row, now)
        )
        return next(free, None)

    def renew_leases(self, leases: Collection[Lease], ttl_s: float) -> list[str]:
        """Hold leases for so many seconds from now; returns the runs that others have."""
        if not leases:
            return []
        with self._database.writing() as connection:
            until = self._now(connection) + ttl_s
            change = update(LEASES).values(expires=until)
            in_order = sorted(leases, key=lambda lease: lease.run)
            return [
                each.run for each in in_order if not connection.execute(change.where(is_lease(each))).rowcount
            ]

    def release_run(self, lease: Lease, status: RunStatus, message: str = "") -> None:
        """Give a run back that has not ended; raises LeaseLost if another has it."""
        self._held.pop(lease.run, None)
        with self._database.writing() as connection:
            if not connection.execute(delete(LEASES).where(is_lease(lease))).rowcount:
                raise taken_over(lease.run)
            change = {"status": status.value, "message": message, "ended": self._clock()}
            connection.execute(update(RUNS).where(RUNS.c.id == lease.run).values(**change))

    def lease_of(self, run: str) -> Lease | None:
        """The lease of a run, expired or not."""
        return self._found(select(LEASES).where(LEASES.c.run == run), _record)

    def _taken(self, connection: Connection, run: str, holder: str, until: float) -> Lease:
        old = connection.execute(select(func.max(LEASES.c.epoch)).where(LEASES.c.run == run)).scalar()
        owner = asdict(this_process())
        row = {"run": run, "epoch": _next_epoch(old), "holder": holder, "expires": until, **owner}
        insert_or_replace(connection, LEASES, row, ("run",))
        status = {"status": RunStatus.RUNNING.value, "message": "", "ended": None}
        connection.execute(update(RUNS).where(RUNS.c.id == run).values(**status, **owner))
        found = _lease_row(connection, run)
        assert found is not None
        lease = _record(found)
        self._held[run] = lease
        return lease

    def _now(self, connection: Connection) -> float:
        """The database's clock where hosts share one, so that their own clocks may differ."""
        if connection.dialect.name == "postgresql":
            return float(
                connection.execute(select(func.extract("epoch", func.clock_timestamp()))).scalar_one()
            )
        return self._clock()


def is_free(connection: Connection, row: Row[Any], now: float) -> bool:
    """Whether nobody carries out a run that is marked as running."""
    lease = _lease_row(connection, row.id)
    if lease is None:
        return is_alive(_owner(row)) is False
    alive = is_alive(_owner(lease))
    return alive is False or lease.expires + (LIVING_S if alive else 0.0) < now


def is_dead(lease: Row[Any]) -> bool:
    """Whether the holder of a lease is known to have ended: one that could be seen from here and is gone."""
    return is_alive(_owner(lease)) is False


def _begun(*, lock: bool) -> Any:
    """Runs that somebody began, oldest first, locked without those that another transaction has locked.

    One without jobs is the log of an executor: nobody can go on with it.
    """
    query = select(RUNS).where(RUNS.c.status == RunStatus.RUNNING.value).order_by(RUNS.c.number)
    query = query.where(select(JOBS.c.id).where(JOBS.c.run == RUNS.c.id).exists())
    return query.with_for_update(skip_locked=True, of=RUNS) if lock else query


def _locked(connection: Connection, run: str) -> Row[Any]:
    row = connection.execute(select(RUNS).where(RUNS.c.id == run).with_for_update()).first()
    if row is None:
        raise StoreError(f"no run {run!r}; `tuneloom runs` lists what there is")
    return row


def _refuse_held(connection: Connection, row: Row[Any], holder: str, now: float) -> None:
    lease = _lease_row(connection, row.id)
    if lease is not None and lease.holder == holder:
        return
    if row.status != RunStatus.RUNNING.value or is_free(connection, row, now):
        return
    if is_alive(_owner(lease if lease is not None else row)):
        raise StoreError(f"run {row.id} is being worked on by process {row.pid}: stop that first")
    if lease is None:
        return  # begun on another host by an older program, which knew no leases
    raise StoreError(
        f"run {row.id} is carried out on host {lease.host!r} (process {lease.pid}); if that is gone, "
        f"try again in {max(1, round(lease.expires - now))} s, when its lease ends"
    )


def _next_epoch(old: int | None) -> int:
    """Larger than any earlier one, also of a lease whose row was given back."""
    return max((old or 0) + 1, time.time_ns() // 1000)


def _lease_row(connection: Connection, run: str) -> Row[Any] | None:
    return connection.execute(select(LEASES).where(LEASES.c.run == run)).first()


def _owner(row: Row[Any]) -> Owner:
    return from_row(Owner, row)


def _record(row: Row[Any]) -> Lease:
    return from_row(Lease, row)
