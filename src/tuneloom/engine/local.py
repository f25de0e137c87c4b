"""The engine of one machine: warm worker processes, one watchdog, no threads."""

import selectors
import time
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from tuneloom.engine.calls import Call, CallEnded, CallResult, Died, Returned, TimedOut
from tuneloom.engine.processes import Nursery, WorkerProcess
from tuneloom.model import Failure


@dataclass(slots=True)
class _Running:
    id: str
    call: Call
    started_s: float


@dataclass(slots=True)
class _Worker:
    process: WorkerProcess
    name: str | None
    current: _Running | None = None
    queue: deque[tuple[str, Call]] = field(default_factory=deque)


class LocalEngine:
    """Carries calls out in processes forked from one warm parent.

    Not thread-safe. Results of stopped calls are dropped. The parent process starts
    with the first call, or with `prepare`.
    """

    def __init__(self, warm_up: str | None = None, environment: Mapping[str, str] | None = None) -> None:
        self._warm_up = warm_up
        self._environment = environment or {}
        self._nursery: Nursery | None = None
        self._selector = selectors.DefaultSelector()
        self._named: dict[str, _Worker] = {}
        self._by_call: dict[str, _Worker] = {}
        self._ended: list[CallEnded] = []

    def now_s(self) -> float:
        return time.monotonic()

    def prepare(self) -> None:
        self._ready_nursery()

    def start(self, call_id: str, call: Call) -> None:
        worker = self._worker_for(call)
        self._by_call[call_id] = worker
        if worker.current is None:
            self._send(worker, call_id, call)
        else:
            worker.queue.append((call_id, call))

    def stop(self, call_id: str) -> None:
        worker = self._by_call.pop(call_id, None)
        if worker is None:
            return
        if worker.current is None or worker.current.id != call_id:
            worker.queue = deque(item for item in worker.queue if item[0] != call_id)
        else:
            worker.current = None
            self._retire(worker, Died(reason="a call before it was stopped"))

    def release(self, worker: str) -> None:
        if worker in self._named:
            self._retire(self._named[worker], Died(reason="its worker was released"))

    def poll(self, timeout_s: float | None) -> Sequence[CallEnded]:
        if not self._ended:
            for key, _ in self._selector.select(self._wait_s(timeout_s)):
                self._hear(key.data)
            self._watch()
        ended, self._ended = self._ended, []
        return ended

    def close(self) -> None:
        for key in list((self._selector.get_map() or {}).values()):
            self._retire(key.data, None)
        self._ended.clear()
        if self._nursery is not None:
            self._nursery.close()
            self._nursery = None
        self._selector.close()

    def _worker_for(self, call: Call) -> _Worker:
        if call.worker is not None and call.worker in self._named:
            return self._named[call.worker]
        worker = _Worker(self._ready_nursery().fork(), call.worker)
        self._selector.register(worker.process.channel, selectors.EVENT_READ, worker)
        if call.worker is not None:
            self._named[call.worker] = worker
        return worker

    def _ready_nursery(self) -> Nursery:
        if self._nursery is None:
            self._nursery = Nursery(self._warm_up, self._environment)
        return self._nursery

    def _send(self, worker: _Worker, call_id: str, call: Call) -> None:
        worker.current = _Running(call_id, call, self.now_s())
        try:
            worker.process.channel.send(call)
        except OSError:
            self._lost(worker)

    def _hear(self, worker: _Worker) -> None:
        try:
            messages = worker.process.channel.received()
        except EOFError:
            self._lost(worker)
            return
        for result in messages:
            self._end_current(worker, result)
            if worker.name is None or _spoils(result):
                self._replace(worker)
            elif worker.queue:
                self._send(worker, *worker.queue.popleft())

    def _replace(self, worker: _Worker) -> None:
        """End a worker that has done its last call; calls that wait for it go to its successor."""
        waiting, worker.queue = worker.queue, deque()
        self._retire(worker, None)
        for call_id, call in waiting:
            self.start(call_id, call)

    def _lost(self, worker: _Worker) -> None:
        assert self._nursery is not None
        self._selector.unregister(worker.process.channel)
        died = Died(reason=self._nursery.how_it_ended(worker.process))
        self._end_current(worker, died)
        self._drop_queue(worker, died)

    def _end_current(self, worker: _Worker, result: CallResult) -> None:
        running, worker.current = worker.current, None
        if running is not None and self._by_call.pop(running.id, None) is not None:
            self._ended.append(
                CallEnded(id=running.id, result=result, started_s=running.started_s, ended_s=self.now_s())
            )

    def _retire(self, worker: _Worker, reason: CallResult | None) -> None:
        assert self._nursery is not None
        self._selector.unregister(worker.process.channel)
        self._nursery.end(worker.process)
        self._drop_queue(worker, reason or Died(reason="its worker ended"))

    def _drop_queue(self, worker: _Worker, reason: CallResult) -> None:
        if worker.name is not None:
            self._named.pop(worker.name, None)
        now = self.now_s()
        for call_id, _ in worker.queue:
            if self._by_call.pop(call_id, None) is not None:
                self._ended.append(CallEnded(id=call_id, result=reason, started_s=now, ended_s=now))
        worker.queue.clear()

    def _watch(self) -> None:
        now = self.now_s()
        for worker in {id(w): w for w in self._by_call.values()}.values():
            limit = worker.current.call.timeout_s if worker.current else None
            if worker.current and limit is not None and now - worker.current.started_s > limit:
                timed_out = TimedOut(after_s=limit)
                self._end_current(worker, timed_out)
                self._retire(worker, Died(reason="a call before it hung"))

    def _wait_s(self, timeout_s: float | None) -> float | None:
        now = self.now_s()
        limits = [
            worker.current.started_s + worker.current.call.timeout_s - now
            for worker in self._by_call.values()
            if worker.current is not None and worker.current.call.timeout_s is not None
        ]
        if timeout_s is not None:
            limits.append(timeout_s)
        return max(0.0, min(limits) + 0.001) if limits else None


def _spoils(result: CallResult) -> bool:
    """Whether the value says that its process should serve nobody else."""
    value = result.value if isinstance(result, Returned) else None
    return isinstance(value, Failure) and value.spoils_worker
