"""An engine without processes: calls end when a script says so, under a clock of its own."""

import heapq
from collections.abc import Callable, Sequence
from itertools import count

from tuneloom.engine.calls import Call, CallEnded, CallResult

Answer = Callable[[Call], CallResult]


class ScriptedEngine:
    """Fulfils the protocol `Engine`; every call is answered by a function of it.

    Time stands still except in `poll`, which moves it to the next end of a call. The
    lists `started`, `stopped` and `released` tell what was asked for, in order.
    """

    def __init__(self, answer: Answer, takes_s: Callable[[Call], float] = lambda _call: 1.0) -> None:
        self._answer = answer
        self._takes_s = takes_s
        self._now_s = 0.0
        self._number = count()
        self._ends: list[tuple[float, int, str, Call, float]] = []
        self.started: list[Call] = []
        self.stopped: list[str] = []
        self.released: list[str] = []
        self.closed = False

    def now_s(self) -> float:
        return self._now_s

    def prepare(self) -> None:
        """Nothing has to be prepared."""

    def start(self, call_id: str, call: Call) -> None:
        self.started.append(call)
        end_s = self._now_s + self._takes_s(call)
        heapq.heappush(self._ends, (end_s, next(self._number), call_id, call, self._now_s))

    def stop(self, call_id: str) -> None:
        if any(entry[2] == call_id for entry in self._ends):
            self.stopped.append(call_id)
        self._ends = [entry for entry in self._ends if entry[2] != call_id]
        heapq.heapify(self._ends)

    def release(self, worker: str) -> None:
        self.released.append(worker)

    def poll(self, timeout_s: float | None) -> Sequence[CallEnded]:
        limit_s = self._now_s + timeout_s if timeout_s is not None else None
        if not self._ends or (limit_s is not None and self._ends[0][0] > limit_s):
            assert limit_s is not None, "nothing runs, so waiting would never end"
            self._now_s = limit_s
            return []
        end_s, _, call_id, call, started_s = heapq.heappop(self._ends)
        self._now_s = end_s
        return [CallEnded(id=call_id, result=self._answer(call), started_s=started_s, ended_s=end_s)]

    def close(self) -> None:
        self.closed = True
