"""The engine of one machine: warm worker processes, one watchdog, no threads."""

import os
import selectors
import time
from collections import deque
from collections.abc import Mapping, Sequence

from tuneloom.engine.api import EngineReport, ResourceLeft, ResourceReport
from tuneloom.engine.calls import (
    Call,
    CallBegan,
    CallEnded,
    CallResult,
    CallWaits,
    Died,
    Lost,
    Raised,
    Returned,
    TimedOut,
)
from tuneloom.engine.channel import Unreadable
from tuneloom.engine.processes import Nursery
from tuneloom.engine.worker import Answer, Began, Waiting
from tuneloom.engine.workers import IdleWorkers, Running, Worker, fit_for_another, keep_quiet, spoils
from tuneloom.model import DeviceGone

_LOOK_S = 2.0


class Watch:
    """Notices what becomes of the machine's devices; override what matters."""

    def look(self) -> Sequence[ResourceReport]:
        """What joined, left or is used by others since the last look; quick, since calls wait meanwhile."""
        return ()

    def fitted(self, call: Call) -> Call:
        """A call so that it disturbs no other process that measures on this machine; quick, too."""
        return call

    def lost(self, resource: str) -> None:
        """A call found out that a device is gone; should it be seen again, then it has joined."""

    def close(self) -> None:
        """Look no more: whatever thread it has ends."""


class LocalEngine:
    """Carries calls out in processes forked from one warm parent.

    Not thread-safe, but for `wake`. Results of stopped calls are dropped. The parent process
    starts with the first call, or with `prepare`. A process serves one call, or several of a group,
    as long as they go well. Places of calls are not looked at: there is one machine. With a `watch`,
    which it closes, devices that join or leave are reported. While a call is alone on its cores, other
    calls that share one of them pause, which does not count for their limits.

    A call that returns DeviceGone is lost, and its device has left.
    """

    def __init__(
        self,
        warm_up: str | None = None,
        environment: Mapping[str, str] | None = None,
        watch: Watch | None = None,
    ) -> None:
        self._warm_up = warm_up
        self._environment = environment or {}
        self._watch = watch
        self._look_at_s = self.now_s()
        self._nursery: Nursery | None = None
        self._selector = selectors.DefaultSelector()
        self._alarm = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)
        self._selector.register(self._alarm, selectors.EVENT_READ, None)
        self._named: dict[str, Worker] = {}
        self._by_call: dict[str, Worker] = {}
        self._idle = IdleWorkers()
        self._reports: list[EngineReport] = []
        self._closed = False

    def now_s(self) -> float:
        return time.monotonic()

    def prepare(self) -> None:
        self._ready_nursery()

    def start(self, call_id: str, call: Call) -> None:
        if self._watch is not None:
            call = self._watch.fitted(call)
            if call.alone:  # with whom it shares its device is said now: a short run has no next look
                self._reports += self._watch.look()
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
            self._retire(worker, "a call before it was stopped")
        self._keep_quiet()

    def release(self, worker: str) -> None:
        if worker in self._named:
            named = self._named[worker]
            self._end_current(named, Lost(reason="its worker was released"))
            self._retire(named, "its worker was released")
            self._keep_quiet()

    def poll(self, timeout_s: float | None) -> Sequence[EngineReport]:
        if not self._reports:
            for key, _ in self._selector.select(self._wait_s(timeout_s)):
                if key.data is None:
                    os.eventfd_read(self._alarm)
                else:
                    self._hear(key.data)
            self._end_overdue()
            self._keep_quiet()
            self._end_idle()
            self._look()
        reports, self._reports = self._reports, []
        return reports

    def wake(self) -> None:
        """Let a `poll` that waits in another thread return, or the next one return at once."""
        os.eventfd_write(self._alarm, 1)

    def close(self) -> None:
        if self._closed:
            return
        self._closed = True
        if self._watch is not None:
            self._watch.close()
        for worker in self._workers():
            self._retire(worker, "its engine was closed")
        self._reports.clear()
        if self._nursery is not None:
            self._nursery.close()
            self._nursery = None
        self._selector.close()
        os.close(self._alarm)

    def _workers(self) -> list[Worker]:
        return [key.data for key in (self._selector.get_map() or {}).values() if key.data is not None]

    def _keep_quiet(self) -> None:
        """Let pause who disturbs, and give their calls to those that may work."""
        keep_quiet(self._workers(), self.now_s())
        for worker in self._workers():
            if worker.may_receive():
                self._deliver(worker)

    def _worker_for(self, call: Call) -> Worker:
        if call.worker is not None and call.worker in self._named:
            return self._named[call.worker]
        waiting = self._idle.take(call.shares_with)
        if waiting is not None:
            return waiting
        worker = Worker(self._ready_nursery().fork(), call.worker)
        self._selector.register(worker.process.channel, selectors.EVENT_READ, worker)
        if call.worker is not None:
            self._named[call.worker] = worker
        return worker

    def _ready_nursery(self) -> Nursery:
        if self._nursery is None:
            self._nursery = Nursery(self._warm_up, self._environment)
        return self._nursery

    def _send(self, worker: Worker, call_id: str, call: Call) -> None:
        worker.take_on(Running(call_id, call, self.now_s()))
        self._keep_quiet()

    def _deliver(self, worker: Worker) -> None:
        """Send a worker its call; never to one that pauses, which would not read it and so hold us up."""
        assert worker.current is not None
        worker.current.sent = True
        try:
            worker.process.channel.send(worker.current.call)
        except OSError:
            self._died(worker)

    def _hear(self, worker: Worker) -> None:
        try:
            messages = worker.process.channel.received()
        except EOFError:
            self._died(worker)
            return
        for message in messages:
            if not isinstance(message, Waiting | Began):
                self._answered(worker, message)
            elif worker.current is not None:
                self._noted(worker.current, message)

    def _noted(self, running: Running, message: Waiting | Began) -> None:
        """A call's time does not run while it waits."""
        running.waiting = isinstance(message, Waiting)
        if isinstance(message, Waiting):
            self._reports.append(CallWaits(id=running.id))
        else:
            running.started_s = message.at_s
            self._reports.append(CallBegan(id=running.id, at_s=message.at_s, waited_s=message.waited_s))

    def _answered(self, worker: Worker, answer: Answer | Unreadable) -> None:
        if isinstance(answer, Unreadable):
            raised = Raised(error=f"its result can't be read: {answer.error}", trace="")
            answer = Answer(result=raised, began_s=self.now_s(), ended_s=self.now_s())
        result = self._without_device(worker, answer.result)
        held = answer if worker.current is not None and worker.current.call.locks else None
        self._end_current(worker, result, held)
        if fit_for_another(worker, result):
            self._idle.keep(worker, self.now_s())
        elif worker.name is None or spoils(result):
            self._replace(worker)
        elif worker.queue:
            self._send(worker, *worker.queue.popleft())

    def _without_device(self, worker: Worker, result: CallResult) -> CallResult | Lost:
        """What a call came to; a device that is gone leaves before its call is reported as lost."""
        running = worker.current
        gone = result.value if isinstance(result, Returned) else None
        if running is None or not isinstance(gone, DeviceGone):
            return result
        if self._watch is not None and running.call.place is not None:
            name = running.call.place.resource
            self._watch.lost(name)
            self._reports.append(ResourceLeft(name=name, reason=gone.reason))
        return Lost(reason=gone.reason)

    def _replace(self, worker: Worker) -> None:
        """End a worker that has done its last call; calls that wait for it go to its successor."""
        waiting, worker.queue = worker.queue, deque()
        self._retire(worker, "its worker was replaced")
        for call_id, call in waiting:
            self.start(call_id, call)

    def _died(self, worker: Worker) -> None:
        assert self._nursery is not None
        self._selector.unregister(worker.process.channel)
        died = Died(cause=self._nursery.how_it_ended(worker.process))
        self._end_current(worker, died)
        self._give_up(worker, f"a call before it took their worker along: {died}")

    def _end_current(self, worker: Worker, result: CallResult | Lost, held: Answer | None = None) -> None:
        """Report the end of a call; one that held locks ended when it gave them back."""
        running, worker.current = worker.current, None
        if running is not None and self._by_call.pop(running.id, None) is not None:
            started_s = running.started_s if held is None else held.began_s
            ended_s = self.now_s() if held is None else held.ended_s
            self._reports.append(
                CallEnded(id=running.id, result=result, started_s=started_s, ended_s=ended_s)
            )

    def _retire(self, worker: Worker, reason: str) -> None:
        assert self._nursery is not None
        self._selector.unregister(worker.process.channel)
        self._nursery.end(worker.process)
        self._give_up(worker, reason)

    def _give_up(self, worker: Worker, reason: str) -> None:
        """Forget a worker that is gone; calls that wait for it never began, so they are lost."""
        self._idle.drop(worker)
        if worker.name is not None:
            self._named.pop(worker.name, None)
        now = self.now_s()
        for call_id, _ in worker.queue:
            if self._by_call.pop(call_id, None) is not None:
                lost = Lost(reason=reason)
                self._reports.append(CallEnded(id=call_id, result=lost, started_s=now, ended_s=now))
        worker.queue.clear()

    def _end_overdue(self) -> None:
        now = self.now_s()
        for worker in {id(w): w for w in self._by_call.values()}.values():
            due_s = worker.due_s()
            if worker.current is not None and due_s is not None and now > due_s:
                self._end_current(worker, TimedOut(after_s=worker.current.call.timeout_s or 0.0))
                self._retire(worker, "a call before it hung")

    def _end_idle(self) -> None:
        for worker in self._idle.overdue(self.now_s()):
            self._retire(worker, "no call of its group came")

    def _look(self) -> None:
        if self._watch is not None and self.now_s() >= self._look_at_s:
            self._reports += self._watch.look()
            self._look_at_s = self.now_s() + _LOOK_S

    def _wait_s(self, timeout_s: float | None) -> float | None:
        now = self.now_s()
        dues = [worker.due_s() for worker in self._by_call.values()]
        limits = [due_s - now for due_s in dues if due_s is not None]
        limits += self._idle.patience_s(now)
        if self._watch is not None:
            limits.append(self._look_at_s - now)
        if timeout_s is not None:
            limits.append(timeout_s)
        return max(0.0, min(limits) + 0.001) if limits else None
