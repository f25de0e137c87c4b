"""What the handlers of a server share."""

import math
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated, Any

from fastapi import Depends, Request

from tuneloom.app.hosting.seeing import device_keys
from tuneloom.server.access.callers import Access
from tuneloom.server.access.rates import RateLimits
from tuneloom.server.background.chores import Inspector, Sweeper
from tuneloom.server.metrics import Metrics
from tuneloom.server.settings import ServerSettings
from tuneloom.server.stores import StorePool
from tuneloom.server.streams.open_streams import OpenStreams
from tuneloom.store import Store, open_store

_FRESH_S = 1.0


@dataclass(slots=True)
class ServerState:
    """Made once for an application; used by all of its threads."""

    settings: ServerSettings
    stores: StorePool
    access: Access
    streams: OpenStreams
    metrics: Metrics
    inspector: Inspector
    sweeper: Sweeper
    _devices: tuple[float, frozenset[str]] = (-math.inf, frozenset())

    @classmethod
    def begin(cls, settings: ServerSettings) -> "ServerState":
        """That of a server on the store of its settings, which is brought up to date."""
        open_store(settings.store, files=settings.files).close()
        stores = StorePool(lambda: open_store(settings.store, files=settings.files))
        return cls(
            settings=settings,
            stores=stores,
            access=Access(stores, RateLimits(settings.rate, settings.burst)),
            streams=OpenStreams.of(stores),
            metrics=Metrics(),
            inspector=Inspector(stores),
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

    def blob(self, digest: str) -> Iterator[bytes]:
        """A file of the store, piece by piece, with a store of its own: who downloads may be slow."""
        with open_store(self.settings.store, files=self.settings.files) as store:
            yield from store.blob(digest)

    @property
    def draining(self) -> bool:
        """Whether the server is about to end."""
        return self.streams.draining

    def drain(self) -> None:
        """Let streams end; nobody should send requests any more."""
        self.streams.draining = True

    def close(self) -> None:
        """End what runs beside the handlers."""
        self.drain()
        self.inspector.close()
        self.sweeper.close()
        self.stores.close()


async def state_of(request: Request) -> ServerState:
    """That of this application."""
    state: ServerState = request.app.state.service
    return state


Served = Annotated[ServerState, Depends(state_of)]
