"""Streams that are open, and glances at what they watch: the store is asked once for all watchers."""

import asyncio
import hashlib
import json
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from starlette.concurrency import run_in_threadpool

from tuneloom.app.hosting.seeing import overview_of, without_others
from tuneloom.server.stores import StorePool
from tuneloom.server.telling import finite, job_told, overview_told

EVERY_S = 1.0
"""How far apart events are."""


Look = Callable[[str], dict[str, Any]]


@dataclass(slots=True)
class Glances:
    """The newest glance at each thing that is watched; used by the event loop alone.

    `look` looks at one thing, in a thread.
    """

    look: Look
    seen: dict[str, tuple[float, dict[str, Any]]] = field(default_factory=dict)
    locks: dict[str, asyncio.Lock] = field(default_factory=dict)

    async def of(self, name: str) -> dict[str, Any]:
        """What a thing looks like now."""
        async with self.locks.setdefault(name, asyncio.Lock()):
            at_s, known = self.seen.get(name, (0.0, {}))
            if not known or time.monotonic() - at_s >= EVERY_S * 0.9:
                known = await run_in_threadpool(self.look, name)
                self.seen[name] = (time.monotonic(), known)
            return known

    def forget(self, name: str) -> None:
        """Nobody watches this any more."""
        self.seen.pop(name, None)
        self.locks.pop(name, None)


def job_look(stores: StorePool) -> Look:
    """Looks at a job: its line, its view, a digest of both, its last trial, and room for events of them."""

    def look(run: str) -> dict[str, Any]:
        with stores.lent() as store:
            job = store.submitted_job(run)
            assert job is not None, "jobs of tenants are not removed while they are watched"
            view, last_trial = store.view(run), store.last_trial(job.job)
        told = job_told(job).model_dump()
        shown = without_others(view) if view is not None else None
        digest = _digest([told, shown])
        return {"job": told, "view": shown, "last_trial": last_trial, "digest": digest, "news": {}}

    return look


def overview_look(stores: StorePool) -> Look:
    """Looks at a service for a tenant, for all tenants (`*`), or for either as an administrator (`!…`)."""

    def look(name: str) -> dict[str, Any]:
        tenant = name.removeprefix("!")
        with stores.lent() as store:
            seen = overview_of(store, None if tenant == "*" else tenant)
        told = overview_told(seen, in_detail=name.startswith("!"))
        digest = _digest(told)
        text = json.dumps(told, allow_nan=False)
        return {"event": f"event: overview\nid: {digest}\ndata: {text}\n\n", "digest": digest}

    return look


def _digest(told: Any) -> str:
    return hashlib.sha256(json.dumps(finite(told)).encode()).hexdigest()[:12]


_MANY = 100


@dataclass(slots=True)
class OpenStreams:
    """Made once for an application, for its event loop alone; streams end when it is `draining`."""

    stores: StorePool
    glances: Glances
    overviews: Glances
    draining: bool = False
    watched: "Counter[str]" = field(default_factory=Counter)

    @classmethod
    def of(cls, stores: StorePool) -> "OpenStreams":
        """None yet, of what these stores hold."""
        return cls(stores, Glances(job_look(stores)), Glances(overview_look(stores)))

    @property
    def count(self) -> int:
        """How many event streams are open."""
        return self.watched.total()

    @property
    def pause_s(self) -> float:
        """How long streams wait between events: longer where many are open, since tuning needs the cores."""
        return EVERY_S * max(1.0, self.count / _MANY)

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
