"""Whose turn it is: which waiting run an executor takes next.

Tenants take turns. The one that has the fewest runs under way for its weight comes first, so none
waits behind a hundred jobs of another; among a tenant's own jobs, priority decides, then age. Runs
that no tenant submitted count as one more tenant. A run whose jobs are all paused waits for nobody.
"""

from collections.abc import Collection
from typing import Any

from sqlalchemy import Connection, Row, func, select

from tuneloom.store.database.tables import JOBS, RUNS, SUBMISSIONS, TENANTS
from tuneloom.store.records import JobStatus, RunStatus

_NOBODY = ""
_OWNED = RUNS.outerjoin(SUBMISSIONS, SUBMISSIONS.c.run == RUNS.c.id)
_owner = func.coalesce(SUBMISSIONS.c.tenant, _NOBODY)
_LIVELY = (JobStatus.WAITING.value, JobStatus.RUNNING.value)


def next_waiting(connection: Connection, others_than: Collection[str] = (), *, lock: bool) -> Row[Any] | None:
    """The waiting run whose turn it is, none of the tenants named here; locked until we commit if asked."""
    for tenant in _in_turn(connection):
        if tenant in others_than:
            continue
        row = connection.execute(_first_of(tenant, lock=lock)).first()
        if row is not None:
            return row
    return None


def tenants_of(connection: Connection, runs: Collection[str]) -> set[str]:
    """The tenants of these runs; "" stands for those that no tenant submitted."""
    query = select(_owner).select_from(_OWNED).where(RUNS.c.id.in_(runs))
    return set(connection.execute(query).scalars())


def _in_turn(connection: Connection) -> list[str]:
    """Tenants with runs that wait, who has least first."""
    held = _counts(connection, RunStatus.RUNNING)
    waiting = _counts(connection, RunStatus.WAITING)
    weights = {row.id: row.weight for row in connection.execute(select(TENANTS.c.id, TENANTS.c.weight))}

    def turn(tenant: str) -> tuple[float, int]:
        return held.get(tenant, (0, 0))[0] / weights.get(tenant, 1.0), waiting[tenant][1]

    return sorted(waiting, key=turn)


def _counts(connection: Connection, status: RunStatus) -> dict[str, tuple[int, int]]:
    """How many runs of a status each tenant has, and the number of its oldest."""
    query = select(_owner, func.count(), func.min(RUNS.c.number)).select_from(_OWNED)
    rows = connection.execute(query.where(RUNS.c.status == status.value).group_by(_owner))
    return {row[0]: (row[1], row[2]) for row in rows}


def _first_of(tenant: str, *, lock: bool) -> Any:
    jobs = select(JOBS.c.id).where(JOBS.c.run == RUNS.c.id)
    paused = jobs.where(JOBS.c.status == JobStatus.PAUSED.value).exists()
    lively = jobs.where(JOBS.c.status.in_(_LIVELY)).exists()
    query = select(RUNS).select_from(_OWNED).where(RUNS.c.status == RunStatus.WAITING.value)
    query = query.where(_owner == tenant, ~paused | lively)
    order = (func.coalesce(SUBMISSIONS.c.priority, 0).desc(), RUNS.c.number)
    query = query.order_by(*order).limit(1)
    return query.with_for_update(skip_locked=True, of=RUNS) if lock else query
