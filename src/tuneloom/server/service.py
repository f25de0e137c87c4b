"""What the handlers of a server share."""

import math
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from tuneloom.app.service.seeing import device_keys
from tuneloom.server.glances import EVERY_S, Glances, job_look, overview_look
from tuneloom.server.inspector import Inspector
from tuneloom.server.metrics import Metrics
from tuneloom.server.rates import Buckets
from tuneloom.server.settings import ServerSettings
from tuneloom.server.stores import StorePool
from tuneloom.server.sweeper import Sweeper
from tuneloom.store import Store, open_store

_FRESH_S = 1.0
_MANY = 100


@dataclass(slots=True)
class Service:
    """Made once for an application; used by all of its threads. Watching is for its event loop alone."""

    settings: ServerSettings
    stores: StorePool
    buckets: Buckets
    metrics: Metrics
    inspector: Inspector
    glances: Glances
    overviews: Glances
    sweeper: Sweeper
    draining: bool = False
    watched: "Counter[str]" = field(default_factory=Counter)
    _devices: tuple[float, frozenset[str]] = (-math.inf, frozenset())

    @classmethod
    def begin(cls, settings: ServerSettings) -> "Service":
        """A service on the store of its settings, which is brought up to date."""
        open_store(settings.store, files=settings.files).close()
        stores = StorePool(lambda: open_store(settings.store, files=settings.files))
        return cls(
            settings=settings,
            stores=stores,
            buckets=Buckets(settings.rate, float(settings.burst)),
            metrics=Metrics(),
            inspector=Inspector(stores),
            glances=Glances(job_look(stores)),
            overviews=Glances(overview_look(stores)),
            sweeper=Sweeper(stores, settings.retention),
        )

    @property
    def run_options(self) -> dict[str, Any]:
        """What is kept with the run of a job."""
        return {"policy": self.settings.policy, "device_cores": self.settings.device_cores}

    def device_keys(self, store: Store) -> frozenset[str]:
        """The keys of devices that executors have, as of the last second: whoever submits asks for them."""
        at_s, known = self._devices
        if time.monotonic() - at_s > _FRESH_S:
            known = device_keys(store)
            self._devices = (time.monotonic(), known)
        return known

    @property
    def streams(self) -> int:
        """How many event streams are open."""
        return self.watched.total()

    @property
    def pause_s(self) -> float:
        """How long streams wait between events: longer where many are open, since tuning needs the cores."""
        return EVERY_S * max(1.0, self.streams / _MANY)

    def watch(self, name: str) -> None:
        """A stream of a job or of an overview begins."""
        self.watched[name] += 1

    def unwatch(self, name: str) -> None:
        """A stream of a job or of an overview ends."""
        self.watched[name] -= 1
        if self.watched[name] <= 0:
            del self.watched[name]
            self.glances.forget(name)
            self.overviews.forget(name)

    def blob(self, digest: str) -> Iterator[bytes]:
        """A file of the store, piece by piece, with a store of its own: who downloads may be slow."""
        store = open_store(self.settings.store, files=self.settings.files)
        try:
            yield from store.blob(digest)
        finally:
            store.close()

    def close(self) -> None:
        """End what runs beside the handlers."""
        self.draining = True
        self.inspector.close()
        self.sweeper.close()
        self.stores.close()
