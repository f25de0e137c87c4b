"""What runs on every machine of a farm: a local engine, driven by orders from afar.

Nothing here knows Ray; `cluster` turns this class into an actor.
"""

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from queue import Empty, SimpleQueue
from typing import assert_never

from tuneloom.engine.calls import Call, CallEnded, Lost, Raised
from tuneloom.engine.local import LocalEngine
from tuneloom.engine.ray.artifacts import ArtifactCache, MissingArtifact, Receipt, receipts_in, unpacked
from tuneloom.engine.ray.files import FileCache, NoRoom
from tuneloom.engine.ray.messages import (
    AgentBroke,
    AgentReport,
    AgentReports,
    AgentSpec,
    ArtifactMissing,
    CallWrote,
    Drop,
    FilesGone,
    Hello,
    KeepFile,
    Order,
    Release,
    Start,
    Stop,
    Survey,
)
from tuneloom.engine.worker import resolve
from tuneloom.errors import TuneloomError

_ENDING_S = 10.0
_FETCHERS = 4

Fetch = Callable[[Receipt], bytes]
"""Brings an artifact from the machine that keeps it; raises MissingArtifact."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Fetched:
    """What was fetched for a call; one of them is `missing` if not all were there."""

    id: str
    found: Mapping[str, bytes]
    missing: Receipt | None


class Agent:
    """Owns a local engine in one thread of its own; its methods are called by others.

    The nursery is started by exec in that thread, so nothing of the actor's process is forked, and it
    ends with the process however that ends.
    """

    def __init__(self, spec: AgentSpec, fetch: Fetch) -> None:
        self._spec = spec
        self._fetch = fetch
        self._artifacts = ArtifactCache(spec.machine)
        self._files: FileCache | None = None
        self._orders: SimpleQueue[Order | _Fetched | None] = SimpleQueue()
        self._early: dict[int, Sequence[Order]] = {}
        self._next = 0
        self._lock = threading.Lock()
        self._reports: SimpleQueue[AgentReport] = SimpleQueue()
        self._ready = threading.Event()
        self._broke = ""
        self._hello: Hello | None = None
        self._engine: LocalEngine | None = None
        self._fetching: dict[str, Call] = {}
        self._fetchers = ThreadPoolExecutor(_FETCHERS, thread_name_prefix="fetching")
        self._thread = threading.Thread(target=self._work, name="engine", daemon=True)
        self._thread.start()

    def hello(self) -> Hello | AgentBroke:
        """Wait until workers can be forked; say what the machine offers."""
        self._ready.wait()
        return self._hello if self._hello is not None else AgentBroke(reason=self._broke)

    def clock(self) -> float:
        """What time it is here."""
        return time.monotonic()

    def order(self, number: int, orders: Sequence[Order]) -> None:
        """Take orders, which are numbered: those that came too early wait for those before them."""
        with self._lock:
            self._early[number] = orders
            while self._next in self._early:
                for order in self._early.pop(self._next):
                    self._orders.put(order)
                self._next += 1
        self._wake()

    def reports(self, patience_s: float) -> AgentReports:
        """Wait for something to tell, and tell it with all that happened meanwhile."""
        told: list[AgentReport] = []
        with suppress(Empty):
            told.append(self._reports.get(timeout=patience_s))
            while True:
                told.append(self._reports.get_nowait())
        return AgentReports(now_s=self.clock(), reports=told)

    def artifact(self, id: str) -> bytes | None:
        """What is kept here under this id, if it still is."""
        return self._artifacts.find(id)

    def close(self) -> None:
        """End all workers."""
        self._orders.put(None)
        self._wake()
        self._thread.join(_ENDING_S)

    def _wake(self) -> None:
        engine = self._engine
        if engine is not None:
            with suppress(OSError, ValueError):  # it has just been closed
                engine.wake()

    def _work(self) -> None:
        try:
            self._prepare()
            while self._obey_all():
                assert self._engine is not None
                for report in self._engine.poll(None):
                    self._reports.put(self._packed(report) if isinstance(report, CallEnded) else report)
        except Exception as error:  # whatever it is, the driver has to hear of it
            self._broke = (
                str(error) if isinstance(error, TuneloomError) else f"{type(error).__name__}: {error}"
            )
            self._reports.put(AgentBroke(reason=self._broke))
        finally:
            self._ready.set()
            self._fetchers.shutdown(wait=False, cancel_futures=True)
            if self._engine is not None:
                self._engine.close()

    def _packed(self, ended: CallEnded) -> CallEnded | CallWrote:
        """The end of a call as it travels."""
        assert self._files is not None
        written = self._files.collected(ended.id)
        ended = self._artifacts.stow(ended)
        return ended if written is None else CallWrote(ended=ended, files=written)

    def _prepare(self) -> None:
        spec = self._spec
        survey: Survey = resolve(spec.survey)(spec.argument)
        self._files = FileCache(survey.files_in)
        self._engine = resolve(spec.engine)(spec.warm_up, spec.environment, survey.watch)
        assert self._engine is not None
        self._engine.prepare()
        self._hello = Hello(
            offers=survey.offers, facts=survey.facts, now_s=self.clock(), files=self._files.digests
        )
        self._ready.set()

    def _obey_all(self) -> bool:
        while True:
            try:
                order = self._orders.get_nowait()
            except Empty:
                return True
            if order is None:
                return False
            self._obey(order)

    def _obey(self, order: Order | _Fetched) -> None:
        assert self._engine is not None and self._files is not None
        match order:
            case Start():
                self._start(order)
            case _Fetched():
                self._fetched(order)
            case Stop():
                self._fetching.pop(order.id, None)
                self._engine.stop(order.id)
                self._files.forget(order.id)
            case Release():
                self._engine.release(order.worker)
            case Drop():
                self._artifacts.drop(order.artifact)
            case KeepFile():
                self._tell_gone(self._files.keep(order.digest, order.data, order.needed))
            case _:
                assert_never(order)

    def _start(self, order: Start) -> None:
        """Begin a call, once what other machines built for it is here: that is fetched meanwhile."""
        call = self._located(order.id, order.call)
        if call is None:
            return
        wanted = [receipt for receipt in receipts_in(call) if self._artifacts.find(receipt.id) is None]
        if not wanted:
            self._begin(order.id, call, {})
            return
        self._fetching[order.id] = call
        self._fetchers.submit(self._fetch_all, order.id, wanted)

    def _fetch_all(self, id: str, wanted: Sequence[Receipt]) -> None:
        """In a thread of its own: another machine may take long to answer, or never do."""
        found: dict[str, bytes] = {}
        missing: Receipt | None = None
        for receipt in wanted:
            try:
                found[receipt.id] = self._fetch(receipt)
            except Exception:  # whatever it is, the call can't begin with what is here
                missing = receipt
                break
        self._orders.put(_Fetched(id=id, found=found, missing=missing))
        self._wake()

    def _fetched(self, fetched: _Fetched) -> None:
        """Begin a call for which something was fetched, unless it was stopped meanwhile."""
        assert self._files is not None
        call = self._fetching.pop(fetched.id, None)
        for id, data in fetched.found.items():
            self._artifacts.keep(id, data)
        if call is not None and fetched.missing is not None:
            self._files.forget(fetched.id)
            self._reports.put(ArtifactMissing(id=fetched.id, receipt=fetched.missing))
        elif call is not None:
            self._begin(fetched.id, call, fetched.found)

    def _begin(self, id: str, call: Call, fetched: Mapping[str, bytes]) -> None:
        assert self._engine is not None and self._files is not None
        try:
            complete = unpacked(call, lambda receipt: fetched.get(receipt.id) or self._artifacts.get(receipt))
        except MissingArtifact as missing:  # something else took its room meanwhile
            self._files.forget(id)
            self._reports.put(ArtifactMissing(id=id, receipt=missing.receipt))
        else:
            self._engine.start(id, complete)

    def _located(self, id: str, call: Call) -> Call | None:
        """A call with its files; None if they are gone: it is lost, and comes again with them."""
        assert self._files is not None
        try:
            return self._files.located(call, id)
        except FileNotFoundError as error:
            wanted = call.reads.digests.values() if call.reads is not None else ()
            self._tell_gone(frozenset(wanted) - self._files.digests)
            self._tell_ended(id, Lost(reason=f"a file is not there any more: {error.filename}"))
        except NoRoom as error:
            self._tell_ended(id, Raised(error=f"{self._spec.machine}: {error}", trace=""))
        return None

    def _tell_ended(self, id: str, result: Lost | Raised) -> None:
        """A call ended before it began."""
        now_s = self.clock()
        self._reports.put(CallEnded(id=id, result=result, started_s=now_s, ended_s=now_s))

    def _tell_gone(self, digests: frozenset[str]) -> None:
        if digests:
            self._reports.put(FilesGone(digests=digests))
