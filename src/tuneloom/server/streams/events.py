"""Events of a job and of an overview, made from the store: a server that is started again goes on.

The id of a job's event is the id of the last trial that was told, and a digest of the last view.
"""

import asyncio
import json
import re
import time
from collections.abc import AsyncIterator
from dataclasses import dataclass, replace
from typing import Any

from starlette.concurrency import run_in_threadpool

from tuneloom.server.streams.open_streams import EVERY_S, OpenStreams
from tuneloom.server.telling import finite

_SILENCE_S = 15.0
_MOST_TRIALS = 500
_MOST_AT_ONCE = 1 << 16
_MARK = re.compile(r"(\d{1,15})-([0-9a-f]{12})\Z")


@dataclass(frozen=True, slots=True)
class Mark:
    """How much a listener has been told."""

    trial: int = 0
    view: str = "0" * 12

    def __str__(self) -> str:
        return f"{self.trial}-{self.view}"


def mark_of(text: str | None) -> Mark:
    """What a `Last-Event-ID` says; one that is not ours counts as none."""
    found = _MARK.match(text or "")
    return Mark(int(found[1]), found[2]) if found else Mark()


async def job_events(streams: OpenStreams, run: str, mark: Mark) -> AsyncIterator[str]:
    """The events of a job after a mark, until it has ended or the server ends."""
    streams.watch(run)
    spoke_s = time.monotonic()
    try:
        yield f"retry: {int(EVERY_S * 2000)}\n\n"
        while not streams.draining:
            glance = await streams.glances.of(run)
            ended, told = bool(glance["job"]["ended"]), ""
            while news := await _news(streams, run, mark, glance):
                mark, event = news
                told += event
                if len(told) > _MOST_AT_ONCE:
                    yield told
                    told = ""
            if ended:
                yield told + _event("end", mark, glance["job"])
                return
            if not told and time.monotonic() - spoke_s > _SILENCE_S:
                told = ": still here\n\n"
            if told:  # all at once: what a stream costs is how often something is sent
                spoke_s = time.monotonic()
                yield told
            await asyncio.sleep(streams.pause_s)
    finally:
        streams.unwatch(run)


async def overview_events(streams: OpenStreams, name: str, known: str) -> AsyncIterator[str]:
    """What an overview looks like whenever it changes, until the server ends; `known` is the last digest."""
    streams.watch(name)
    spoke_s = time.monotonic()
    try:
        yield f"retry: {int(EVERY_S * 2000)}\n\n"
        while not streams.draining:
            glance = await streams.overviews.of(name)
            if glance["digest"] != known:
                known, spoke_s = glance["digest"], time.monotonic()
                yield glance["event"]
            elif time.monotonic() - spoke_s > _SILENCE_S:
                spoke_s = time.monotonic()
                yield ": still here\n\n"
            await asyncio.sleep(streams.pause_s)
    finally:
        streams.unwatch(name)


Telling = tuple[Mark, str]
"""An event, and how much whoever hears it has been told then."""


async def _news(streams: OpenStreams, run: str, mark: Mark, glance: dict[str, Any]) -> Telling | None:
    """The next event for a listener, made once for all who have been told as much."""
    if glance["last_trial"] <= mark.trial and glance["digest"] == mark.view:
        return None
    known: dict[Mark, asyncio.Task[Telling]] = glance["news"]
    if mark not in known:
        known[mark] = asyncio.create_task(run_in_threadpool(_made, streams, run, mark, glance))
    told, event = await asyncio.shield(known[mark])
    if told.trial < glance["last_trial"]:
        known.pop(mark, None)  # one page of many: whoever catches up is seldom in company
    return told, event


def _made(streams: OpenStreams, run: str, mark: Mark, glance: dict[str, Any]) -> Telling:
    """Trials up to those of the glance, so that all who saw it have been told the same; then the view."""
    if glance["last_trial"] > mark.trial:
        trials = _trials(streams, run, mark.trial, glance["last_trial"])
        told = replace(mark, trial=trials[-1]["id"] if trials else glance["last_trial"])
        return told, _event("trials", told, {"trials": trials})
    told = replace(mark, view=glance["digest"])
    return told, _event("view", told, {"job": glance["job"], "view": glance["view"]})


def _event(name: str, mark: Mark, data: Any) -> str:
    return f"event: {name}\nid: {mark}\ndata: {json.dumps(finite(data), allow_nan=False)}\n\n"


def _trials(streams: OpenStreams, run: str, after: int, last: int) -> list[dict[str, Any]]:
    with streams.stores.lent() as store:
        found = store.trials_after(f"{run}.1", after, _MOST_TRIALS)
    return [trial for trial in found if trial["id"] <= last]
