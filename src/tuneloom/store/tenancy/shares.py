"""What tenants have of the executors: whose run is whose, and who used how much of which devices."""

from collections.abc import Mapping
from typing import Any

from sqlalchemy import Connection, select
from sqlalchemy.dialects import postgresql, sqlite

from tuneloom.store.database.queries import Queries
from tuneloom.store.database.tables import SHARES, SUBMISSIONS, TENANTS
from tuneloom.store.tenancy.records import Share

DeviceUse = Mapping[tuple[str, str], float]
"""Seconds by tenant and device key."""


class ShareQueries(Queries):
    """Who has what of the executors."""

    def share_of(self, run: str) -> Share | None:
        """The tenant of a run and its weight; None for a run that no tenant submitted."""
        owned = SUBMISSIONS.join(TENANTS, TENANTS.c.id == SUBMISSIONS.c.tenant)
        query = select(TENANTS.c.id, TENANTS.c.weight).select_from(owned).where(SUBMISSIONS.c.run == run)
        return self._found(query, lambda row: Share(tenant=row.id, weight=row.weight))

    def add_use(self, used: DeviceUse) -> dict[tuple[str, str], float]:
        """Add seconds of device time by tenant and device key; returns what all executors have added."""
        if not used:
            with self._database.reading() as connection:
                return _totals(connection)
        with self._database.writing() as connection:
            for (tenant, key), seconds in sorted(used.items()):
                _add(connection, {"tenant": tenant, "device_key": key, "used_s": seconds})
            return _totals(connection)


def _add(connection: Connection, row: Mapping[str, Any]) -> None:
    make = sqlite.insert if connection.dialect.name == "sqlite" else postgresql.insert
    statement: Any = make(SHARES).values(**row)
    more = {"used_s": SHARES.c.used_s + statement.excluded.used_s}
    connection.execute(statement.on_conflict_do_update(index_elements=["tenant", "device_key"], set_=more))


def _totals(connection: Connection) -> dict[tuple[str, str], float]:
    rows = connection.execute(select(SHARES.c.tenant, SHARES.c.device_key, SHARES.c.used_s))
    return {(row.tenant, row.device_key): row.used_s for row in rows}
