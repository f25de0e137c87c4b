"""Fencing: what an executor writes is refused once another has taken its run over."""

from typing import Any

from sqlalchemy import Connection, select

from tuneloom.errors import LeaseLost
from tuneloom.store.records import Lease
from tuneloom.store.tables.runs import LEASES


def require_held(connection: Connection, lease: Lease) -> None:
    """Raise LeaseLost unless this lease still stands; the row can't change hands until we commit."""
    query = select(LEASES.c.epoch).where(is_lease(lease)).with_for_update(read=True)
    if connection.execute(query).first() is None:
        raise lost(lease)


def is_lease(lease: Lease) -> Any:
    """The condition that finds the row of this very lease."""
    return (LEASES.c.run == lease.run) & (LEASES.c.epoch == lease.epoch)


def lost(lease: Lease) -> LeaseLost:
    """The error for an executor that lost a run."""
    return LeaseLost(
        f"run {lease.run} was taken over by another executor, because this one was not heard of in time",
        lease.run,
    )
