"""Fencing: what an executor writes is refused once another has taken its run over."""

from collections.abc import Collection
from typing import Any

from sqlalchemy import Connection, select

from tuneloom.errors import LeaseLost
from tuneloom.store.database.tables.runs import LEASES
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
