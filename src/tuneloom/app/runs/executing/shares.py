"""Device time of tenants, counted over all executors of a store."""

from collections import defaultdict
from collections.abc import Callable

from tuneloom.store import Store

Elsewhere = Callable[[str, str, float], None]
"""Told the tenant, the device key and the seconds that other executors let it use."""

_LEAST_S = 1e-3


class ShareBook:
    """What an executor lets tenants use, added to the store, and what others did, told to its core."""

    def __init__(self, store: Store, elsewhere: Elsewhere) -> None:
        self._store = store
        self._elsewhere = elsewhere
        self._unwritten: dict[tuple[str, str], float] = defaultdict(float)
        self._totals = store.add_use({})

    def used(self, tenant: str, key: str, seconds: float) -> None:
        """A stage of a tenant held a device for so long."""
        self._unwritten[tenant, key] += seconds

    def settle(self) -> None:
        """Write what was used here and hear what was used elsewhere since the last time."""
        own, self._unwritten = dict(self._unwritten), defaultdict(float)
        totals = self._store.add_use(own)
        for (tenant, key), total_s in totals.items():
            others_s = total_s - self._totals.get((tenant, key), 0.0) - own.get((tenant, key), 0.0)
            if others_s > _LEAST_S:
                self._elsewhere(tenant, key, others_s)
        self._totals = totals
