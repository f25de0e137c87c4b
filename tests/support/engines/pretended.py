"""An engine whose calls take as long as they are told and need no core: farms larger than this machine."""

import os
import select
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from heapq import heapify, heappop, heappush

from tuneloom.engine.api import EngineReport
from tuneloom.engine.calls import Call, CallEnded, CallResult
from tuneloom.engine.local import Watch
from tuneloom.engine.worker import carry_out

LENGTHS = "TUNELOOM_PRETENDED"
"""The variable that says how long calls take, as `build=2,profile=3`; others take no time."""


class PretendedEngine:
    """Carries calls out in its own process, at once, and reports their ends when their time is over.

    Meant for mock jobs whose stages take no time themselves. It stands in for a local engine in an
    agent: everything around it, the messages of the farm included, is real.
    """

    def __init__(
        self, warm_up: str | None, environment: Mapping[str, str], watch: Watch | None = None
    ) -> None:
        pairs = (pair.partition("=") for pair in environment.get(LENGTHS, "").split(",") if pair)
        self._lengths = {name: float(seconds) for name, _, seconds in pairs}
        self._plan: list[tuple[float, float, str, CallResult]] = []
        self._alarm = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)

    def now_s(self) -> float:
        return time.monotonic()

    def prepare(self) -> None:
        """Nothing has to be prepared."""

    def start(self, call_id: str, call: Call) -> None:
        now_s = self.now_s()
        result = carry_out(replace(call, cores=None))
        length_s = self._lengths.get(call.function.partition(":")[2].removeprefix("open_and_"), 0.0)
        heappush(self._plan, (now_s + length_s, now_s, call_id, result))

    def stop(self, call_id: str) -> None:
        self._plan = [planned for planned in self._plan if planned[2] != call_id]
        heapify(self._plan)

    def release(self, worker: str) -> None:
        """Workers are only names here."""

    def wake(self) -> None:
        """Let a `poll` that waits in another thread return."""
        os.eventfd_write(self._alarm, 1)

    def poll(self, timeout_s: float | None) -> Sequence[EngineReport]:
        waits = [timeout_s] if timeout_s is not None else []
        if self._plan:
            waits.append(max(0.0, self._plan[0][0] - self.now_s()))
        if select.select([self._alarm], [], [], min(waits) if waits else None)[0]:
            os.eventfd_read(self._alarm)
        ended: list[EngineReport] = []
        now_s = self.now_s()
        while self._plan and self._plan[0][0] <= now_s:
            _, started_s, call_id, result = heappop(self._plan)
            ended.append(CallEnded(id=call_id, result=result, started_s=started_s, ended_s=now_s))
        return ended

    def close(self) -> None:
        os.close(self._alarm)
