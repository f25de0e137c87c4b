"""What the conductor tells, passed on to the runs that it concerns, and the device time of tenants."""

import logging
from collections import defaultdict
from collections.abc import Callable, Sequence

from tuneloom.app.conducting.listening import Listener
from tuneloom.app.runs.executing.bookkeeping import Book
from tuneloom.app.runs.executing.holding import HeldRuns
from tuneloom.app.runs.executing.writing import RunWriter
from tuneloom.engine.machine import Offer
from tuneloom.errors import StoreError, TargetError
from tuneloom.scheduling.messages import Command, Event
from tuneloom.store import JobStatus, SpanRecord, Store

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


_LOG = logging.getLogger("tuneloom.runs")


class RunListener(Listener):
    """Notes at once, writes only what has to be written at the end of a job."""

    def __init__(
        self,
        runs: HeldRuns,
        writer: RunWriter,
        shares: ShareBook | None,
        beat: Callable[[float], None],
    ) -> None:
        self._offers: dict[str, Offer] = {}
        self._sharers: dict[str, str] = {}
        self._runs = runs
        self._writer = writer
        self._shares = shares
        self._beat = beat

    def happened(self, event: Event, commands: Sequence[Command]) -> None:
        self._writer.decided(event, commands)

    def resource_joined(self, offer: Offer, at_s: float) -> None:
        self._offers[offer.resource.name] = offer
        for held in self._runs:
            held.book.resources.joined(offer, at_s)

    def resource_left(self, name: str, reason: str, at_s: float) -> None:
        self._offers.pop(name, None)
        for held in self._runs:
            held.book.resources.left(name, reason, at_s)

    def resource_disturbed(self, name: str, by: str, at_s: float) -> None:
        for held in self._runs:
            held.book.resources.disturbed(name, by, at_s)
        if by and self._is_wanted(name):
            _LOG.warning("%s is also used by %s: its times may be wrong", name, by)

    def resource_shared(self, name: str, by: str, at_s: float) -> None:
        self._sharers[name] = by
        for held in self._runs:
            held.book.resources.shared(name, by, at_s)
        if by and self._is_wanted(name):
            _LOG.warning("%s is shared with %s: measurements take turns", name, by)

    def resource_waited_for(self, job: str, name: str, seconds: float) -> None:
        held = self._runs.of(job)
        if held is not None:
            held.book.resources.waited_for(name, seconds)

    def introduce(self, book: Book, at_s: float) -> None:
        """Let a run that is taken later note the resources that are there, and who shares them."""
        for name, offer in self._offers.items():
            book.resources.joined(offer, at_s)
            if by := self._sharers.get(name):
                book.resources.shared(name, by, at_s)

    def _is_wanted(self, device: str) -> bool:
        """Whether a job measures on such a device."""
        key = getattr(self._offers[device].resource, "key", None)
        programs = (program for held in self._runs for program in held.programs.values())
        return any(program.spec.device_key == key for program in programs)

    def ran(self, span: SpanRecord) -> None:
        held = self._runs.of(span.job)
        if held is not None:
            held.book.ran(span)

    def device_used(self, job: str, key: str, seconds: float) -> None:
        held = self._runs.of(job)
        if self._shares is not None and held is not None and held.share is not None:
            self._shares.used(held.share.tenant, key, seconds)

    def commit(self) -> None:
        self._writer.commit()

    def job_refused(self, job: str, reason: str) -> None:
        held = self._runs.of(job)
        if held is not None and job in held.programs:
            with self._runs.guarding(held):
                held.end(job, JobStatus.FAILED, TargetError(reason, field="device"))

    def job_ended(self, job: str, *, cancelled: bool) -> None:
        held = self._runs.of(job)
        if held is not None and job in held.programs:
            with self._runs.guarding(held):
                held.complete(job, cancelled=cancelled)

    def job_failed(self, job: str, error: Exception) -> None:
        held = self._runs.of(job)
        if held is None or job not in held.programs:
            return
        with self._runs.guarding(held):
            if isinstance(error, StoreError):  # what it found can't be kept: nor can how it ended
                raise error
            held.break_off(job, error)

    def beat(self, now_s: float) -> None:
        self._beat(now_s)
