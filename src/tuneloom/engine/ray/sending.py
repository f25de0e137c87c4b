"""Calls on their way to machines: what has to be there before them, and what comes back."""

from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from itertools import count
from pathlib import Path
from typing import Any
from weakref import finalize

from tuneloom.engine.calls import (
    Call,
    CallBegan,
    CallEnded,
    CallResult,
    CallWaits,
    Lost,
    Raised,
    ReadFiles,
    Returned,
)
from tuneloom.engine.ray.artifacts import Receipt, receipts_in, unpacked
from tuneloom.engine.ray.files import mentioned, unpack
from tuneloom.engine.ray.links import Link
from tuneloom.engine.ray.messages import ArtifactMissing, Drop, KeepFile, Release, Start, Stop
from tuneloom.model import Artifact

MOST_SENT_BYTES = 256 << 20
"""How much stays in the cluster's memory after it was sent; a model that is larger stays alone."""


class SentFiles:
    """Files as the cluster sends them; the last ones are kept for other machines, up to so many bytes.

    What is on its way to a machine is kept by the order that it is part of.
    """

    def __init__(self, put: Callable[[bytes], Any], most_bytes: int = MOST_SENT_BYTES) -> None:
        self._put = put
        self._most_bytes = most_bytes
        self._kept: OrderedDict[str, tuple[Any, int]] = OrderedDict()

    def get(self, digest: str, path: Path) -> Any:
        """What the cluster made of a file, which is read if that is not here any more; raises OSError."""
        if digest not in self._kept:
            data = path.read_bytes()
            self._kept[digest] = self._put(data), len(data)
        self._kept.move_to_end(digest)
        while len(self._kept) > 1 and sum(size for _, size in self._kept.values()) > self._most_bytes:
            self._kept.popitem(last=False)
        return self._kept[digest][0]


class _Stub:
    """Lives as long as the driver's copy of a receipt does."""


@dataclass(slots=True)
class _Sent:
    """A call that is with an agent; `instead_of` is what it makes again for the call `then`."""

    id: str
    call: Call
    link: Link
    sent_s: float
    instead_of: Receipt | None = None
    then: Call | None = None


class RemoteCalls:
    """Sends calls to agents with all they need, and turns their answers into reports.

    Agents get ids that are used once, so an answer to a call that was stopped is never taken for
    one to its successor. What was built on a machine that is gone is built again on the one that
    needs it: the caller learns nothing of it but that the call took longer.
    """

    def __init__(
        self, links: Mapping[str, Link], put: Callable[[bytes], Any], now_s: Callable[[], float]
    ) -> None:
        self._links = links
        self._now_s = now_s
        self._number = count()
        self._sent: dict[str, _Sent] = {}
        self._now_under: dict[str, str] = {}
        self._workers: dict[str, set[str]] = {}
        self._recipes: dict[str, Call] = {}
        self._files = SentFiles(put)
        self._unsent: dict[Link, None] = {}

    def start(self, link: Link, call_id: str, call: Call) -> list[CallEnded]:
        """Order a call; the answer is its end if it can't even be sent."""
        try:
            if not link.node.here and (reads := mentioned(call)) is not None:
                self._send_files(link, reads)
        except OSError as error:
            return [self._end(call_id, Raised(error=f"OSError: {error}", trace=""))]
        self._order(link, _Sent(call_id, call, link, self._now_s()))
        return []

    def stop(self, call_id: str) -> None:
        """End a call, wherever it is."""
        under = self._now_under.pop(call_id, None)
        if under is not None:
            link = self._sent.pop(under).link
            link.orders.append(Stop(id=under))
            self._unsent[link] = None

    def release(self, worker: str) -> None:
        """End a named worker on all machines where it may live."""
        for machine in self._workers.pop(worker, ()):
            link = self._links.get(machine)
            if link is not None:
                link.orders.append(Release(worker=worker))
                self._unsent[link] = None

    def take_unsent(self) -> list[Link]:
        """The machines for which orders wait."""
        links, self._unsent = list(self._unsent), {}
        return links

    def lost(self, link: Link) -> None:
        """Forget the calls of a machine that is gone."""
        for under in [under for under, sent in self._sent.items() if sent.link is link]:
            self._now_under.pop(self._sent.pop(under).id, None)
        self._unsent.pop(link, None)

    def ended(self, link: Link, ended: CallEnded, files: Mapping[str, bytes]) -> list[CallEnded]:
        """The report of a call's end; none for one that was stopped, or was made for another."""
        sent = self._sent.pop(ended.id, None)
        if sent is None:
            return []
        result = self._received(sent, ended.result, files)
        if sent.instead_of is not None and sent.then is not None:
            return self._go_on(sent, sent.instead_of, sent.then, result)
        del self._now_under[sent.id]
        now_s = self._now_s()
        started_s = link.on_our_clock(ended.started_s, sent.sent_s, now_s)
        ended_s = link.on_our_clock(ended.ended_s, started_s, now_s)
        return [CallEnded(id=sent.id, result=result, started_s=started_s, ended_s=ended_s)]

    def noted(self, link: Link, report: CallWaits | CallBegan) -> list[CallWaits | CallBegan]:
        """The report of a call that waits or has begun, under its own id and on our clock."""
        sent = self._sent.get(report.id)
        if sent is None:
            return []
        if isinstance(report, CallWaits):
            return [replace(report, id=sent.id)]
        at_s = link.on_our_clock(report.at_s, sent.sent_s, self._now_s())
        return [replace(report, id=sent.id, at_s=at_s)]

    def missing(self, link: Link, report: ArtifactMissing) -> list[CallEnded]:
        """Make again what a call needs, where it is needed."""
        sent = self._sent.pop(report.id, None)
        if sent is None:
            return []
        recipe = self._recipes.get(report.receipt.id)
        if recipe is None:
            return [self._end(sent.id, Raised(error="what it needs is gone with its machine", trace=""))]
        needs = sent.call
        call = replace(recipe, place=needs.place, cores=needs.cores, alone=needs.alone, locks=needs.locks)
        again = replace(sent, call=call, instead_of=report.receipt, then=sent.call)
        self._order(link, again)
        return []

    def _go_on(self, sent: _Sent, receipt: Receipt, call: Call, result: CallResult | Lost) -> list[CallEnded]:
        """Something was made again: send the call that waited for it."""
        value = result.value if isinstance(result, Returned) else None
        if not isinstance(value, Artifact):
            return [
                self._end(sent.id, Raised(error=f"what it needs can't be built again: {result}", trace=""))
            ]
        made = unpacked(call, lambda each: value.payload if each.id == receipt.id else each)
        self._order(sent.link, replace(sent, call=made, instead_of=None, then=None))
        return []

    def _order(self, link: Link, sent: _Sent) -> None:
        under, call = f"{next(self._number)}", sent.call
        self._sent[under] = sent
        self._now_under[sent.id] = under
        if call.worker is not None:
            self._workers.setdefault(call.worker, set()).add(link.machine)
        for receipt in receipts_in(call):
            holder = self._links.get(receipt.machine)
            if holder is not None and holder is not link:
                link.holders[receipt.machine] = holder.line
        reads = None if link.node.here else mentioned(call)
        writes = None if link.node.here else call.writes
        if reads is not call.reads or writes != call.writes:
            call = replace(call, reads=reads, writes=writes)
        link.orders.append(Start(id=under, call=call))
        self._unsent[link] = None

    def _send_files(self, link: Link, reads: ReadFiles) -> None:
        needed = frozenset(reads.digests.values())
        for name, digest in reads.digests.items():
            if digest not in link.files:
                data = self._files.get(digest, Path(reads.folder) / name)
                link.orders.append(KeepFile(digest=digest, data=data, needed=needed))
                link.files.add(digest)

    def _received(
        self, sent: _Sent, result: CallResult | Lost, files: Mapping[str, bytes]
    ) -> CallResult | Lost:
        """A result with what came with it: files are written, receipts noted."""
        if files and sent.call.writes is not None:
            try:
                unpack(files, Path(sent.call.writes))
            except OSError as error:
                return Raised(error=f"OSError: {error}", trace="")
        value = result.value if isinstance(result, Returned) else None
        if isinstance(value, Artifact) and isinstance(value.payload, Receipt):
            self._note(value.payload, sent.call)
        return result

    def _note(self, receipt: Receipt, recipe: Call) -> None:
        """Remember how something was made until nobody has its receipt any more."""
        self._recipes[receipt.id] = recipe
        receipt.stub = _Stub()
        finalize(receipt.stub, self._forget, receipt.id, receipt.machine).atexit = False

    def _forget(self, artifact: str, machine: str) -> None:
        self._recipes.pop(artifact, None)
        link = self._links.get(machine)
        if link is not None:
            link.orders.append(Drop(artifact=artifact))

    def _end(self, call_id: str, result: CallResult) -> CallEnded:
        self._now_under.pop(call_id, None)
        now_s = self._now_s()
        return CallEnded(id=call_id, result=result, started_s=now_s, ended_s=now_s)
