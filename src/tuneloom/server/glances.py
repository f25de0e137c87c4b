"""Glances at jobs: however many streams watch a job, the store is asked once for all of them."""

import asyncio
import hashlib
import json
import time
from dataclasses import dataclass, field
from typing import Any

from starlette.concurrency import run_in_threadpool

from tuneloom.app.service.seeing import without_others
from tuneloom.server.stores import StorePool
from tuneloom.server.telling import job_told

EVERY_S = 1.0
"""How far apart events are."""


@dataclass(slots=True)
class Glances:
    """The newest glance at each job that is watched; used by the event loop alone."""

    stores: StorePool
    seen: dict[str, tuple[float, dict[str, Any]]] = field(default_factory=dict)
    locks: dict[str, asyncio.Lock] = field(default_factory=dict)

    async def of(self, run: str) -> dict[str, Any]:
        """What a job looks like now: its line, its view, a digest of both, and its last trial."""
        async with self.locks.setdefault(run, asyncio.Lock()):
            at_s, known = self.seen.get(run, (0.0, {}))
            if not known or time.monotonic() - at_s >= EVERY_S * 0.9:
                known = await run_in_threadpool(self._glance, run)
                self.seen[run] = (time.monotonic(), known)
            return known

    def forget(self, run: str) -> None:
        """Nobody watches this job any more."""
        self.seen.pop(run, None)
        self.locks.pop(run, None)

    def _glance(self, run: str) -> dict[str, Any]:
        with self.stores.lent() as store:
            job = store.submitted_job(run)
            assert job is not None, "jobs of tenants are not removed while they are watched"
            view, last_trial = store.view(run), store.last_trial(job.job)
        told = job_told(job).model_dump()
        shown = without_others(view) if view is not None else None
        digest = hashlib.sha256(json.dumps([told, shown]).encode()).hexdigest()[:12]
        return {"job": told, "view": shown, "last_trial": last_trial, "digest": digest}
