"""An engine without processes: calls end when a script says so, under a clock of its own."""

import heapq
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import count

from tuneloom.engine.api import EngineReport, MachineLost
from tuneloom.engine.calls import Call, CallEnded, CallResult, Died, Lost, TimedOut

Answer = Callable[[Call], CallResult]


@dataclass(order=True, slots=True)
class _Planned:
    """Something that happens at its time; `call` is None for what happens by itself."""

    at_s: float
    number: int
    id: str = field(compare=False)
    call: Call | None = field(compare=False, default=None)
    since_s: float = field(compare=False, default=0.0)
    result: Lost | None = field(compare=False, default=None)
    report: EngineReport | None = field(compare=False, default=None)


class ScriptedEngine:
    """Fulfils the protocol `Engine`; every call is answered by a function of it.

    Time stands still except in `poll`, which moves it to the next end of a call or to the
    next thing that was planned to happen. The lists `started`, `stopped` and `released` tell
    what was asked for, in order. All calls are carried out at once, also those of one named
    worker; but when that dies, calls that it has not ended are lost. `forget` is told which
    named workers were released.
    """

    def __init__(
        self,
        answer: Callable[[Call], CallResult | Lost],
        takes_s: Callable[[Call], float] = lambda _call: 1.0,
        forget: Callable[[str], None] = lambda _worker: None,
    ) -> None:
        self._forget = forget
        self._answer = answer
        self._takes_s = takes_s
        self._now_s = 0.0
        self._number = count()
        self._plan: list[_Planned] = []
        self.started: list[Call] = []
        self.stopped: list[str] = []
        self.released: list[str] = []
        self.closed = False

    def now_s(self) -> float:
        return self._now_s

    def prepare(self) -> None:
        """Nothing has to be prepared."""

    def happens(self, at_s: float, report: EngineReport) -> None:
        """Let a resource join or leave, or a machine get lost, at some time."""
        heapq.heappush(self._plan, _Planned(at_s, next(self._number), "", report=report))

    def start(self, call_id: str, call: Call) -> None:
        self.started.append(call)
        end_s = self._now_s + self._takes_s(call)
        heapq.heappush(self._plan, _Planned(end_s, next(self._number), call_id, call, self._now_s))

    def stop(self, call_id: str) -> None:
        ended = next((p for p in self._plan if p.call is not None and p.id == call_id), None)
        if ended is None:
            return
        self.stopped.append(call_id)
        self._drop(lambda planned: planned is ended)
        self._lose_worker(ended.call, "a call before it was stopped")

    def release(self, worker: str) -> None:
        self.released.append(worker)
        self._forget(worker)

    def poll(self, timeout_s: float | None) -> Sequence[EngineReport]:
        limit_s = self._now_s + timeout_s if timeout_s is not None else None
        if not self._plan or (limit_s is not None and self._plan[0].at_s > limit_s):
            assert limit_s is not None, "nothing runs, so waiting would never end"
            self._now_s = limit_s
            return []
        planned = heapq.heappop(self._plan)
        self._now_s = max(self._now_s, planned.at_s)
        if planned.report is not None:
            return [self._happened(planned.report)]
        assert planned.call is not None
        result = planned.result or self._answer(planned.call)
        if isinstance(result, Died | TimedOut):
            self._lose_worker(planned.call, str(result))
        return [
            CallEnded(id=planned.id, result=result, started_s=planned.since_s, ended_s=self._now_s),
        ]

    def close(self) -> None:
        self.closed = True

    def _happened(self, report: EngineReport) -> EngineReport:
        if isinstance(report, MachineLost):
            name = report.name
            self._drop(
                lambda p: p.call is not None and p.call.place is not None and p.call.place.machine == name
            )
        return report

    def _lose_worker(self, call: Call | None, reason: str) -> None:
        """Calls of a named worker that is gone are lost at once."""
        if call is None or call.worker is None:
            return
        machine = call.place and call.place.machine
        for planned in self._plan:
            other = planned.call
            if other is not None and (other.worker, other.place and other.place.machine) == (
                call.worker,
                machine,
            ):
                planned.at_s, planned.result = self._now_s, Lost(reason=reason)
        heapq.heapify(self._plan)

    def _drop(self, unwanted: Callable[[_Planned], bool]) -> None:
        self._plan = [planned for planned in self._plan if not unwanted(planned)]
        heapq.heapify(self._plan)
