"""Whose records may be read by whom."""

from sqlalchemy import ColumnElement, select, true

from tuneloom.store.database.tables.runs import JOBS, TRIALS
from tuneloom.store.database.tables.tenancy import SUBMISSIONS, TENANTS


def readable_by(reader: str | None) -> ColumnElement[bool]:
    """The condition for trials that a tenant may learn from; None reads everything.

    Its own, those that no tenant made, and those of tenants who share theirs. A tenant that stops
    sharing takes all of its records back, also those made before.
    """
    if reader is None:
        return true()
    owned = JOBS.join(SUBMISSIONS, SUBMISSIONS.c.run == JOBS.c.run)
    owned = owned.join(TENANTS, TENANTS.c.id == SUBMISSIONS.c.tenant)
    private = select(JOBS.c.id).select_from(owned).where(JOBS.c.id == TRIALS.c.job)
    private = private.where(SUBMISSIONS.c.tenant != reader, TENANTS.c.shares_records == 0)
    return ~private.correlate(TRIALS).exists()
