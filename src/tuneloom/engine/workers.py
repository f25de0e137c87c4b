"""Workers as the engine of one machine knows them: busy with a call, idle, or pausing for a measurement."""

import signal
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field

from tuneloom.engine.calls import Call, CallResult, Lost, Returned
from tuneloom.engine.processes import WorkerProcess
from tuneloom.model import Failure

MOST_CALLS = 16
"""So many calls of a group has one process; after that, what libraries leak goes with it."""
MOST_IDLE_S = 3.0


@dataclass(slots=True)
class Running:
    """A call that a worker carries out once it is `sent`; `paused_s` is for how long it has paused so far.

    While it is `waiting` for locks, its time does not run.
    """

    id: str
    call: Call
    started_s: float
    paused_s: float = 0.0
    sent: bool = False
    waiting: bool = False

    @property
    def due_s(self) -> float | None:
        """When it has to be over; pauses and waiting don't count."""
        limit_s = self.call.timeout_s
        return None if limit_s is None or self.waiting else self.started_s + self.paused_s + limit_s


@dataclass(slots=True)
class Worker:
    """A process, what it does and what waits for it.

    `group` is that of its last call, none if that shares its process with no other. It pauses since
    `paused_at_s`, or works.
    """

    process: WorkerProcess
    name: str | None
    current: Running | None = None
    queue: deque[tuple[str, Call]] = field(default_factory=deque)
    group: str | None = None
    calls: int = 0
    paused_at_s: float | None = None

    def take_on(self, running: Running) -> None:
        """Begin a call, whose own pause begins now if the worker pauses already."""
        self.current = running
        if self.paused_at_s is not None:
            self.paused_at_s = running.started_s
        self.group = running.call.shares_with
        self.calls += 1

    def pause(self, now_s: float) -> None:
        """Let its process do nothing for a while."""
        self.paused_at_s = now_s
        self.process.signal(signal.SIGSTOP)

    def resume(self, now_s: float) -> None:
        """Let its process go on."""
        assert self.paused_at_s is not None
        if self.current is not None:
            self.current.paused_s += now_s - self.paused_at_s
        self.paused_at_s = None
        self.process.signal(signal.SIGCONT)

    def may_receive(self) -> bool:
        """Whether its call is still to be sent, and it is there to read it."""
        return self.current is not None and not self.current.sent and self.paused_at_s is None

    def due_s(self) -> float | None:
        """When its call has to be over, if it is not paused."""
        return None if self.current is None or self.paused_at_s is not None else self.current.due_s


class IdleWorkers:
    """Nameless workers that wait for another call of their group, and since when."""

    def __init__(self) -> None:
        self._since: dict[int, tuple[Worker, float]] = {}

    def keep(self, worker: Worker, now_s: float) -> None:
        """Let a worker wait."""
        self._since[id(worker)] = worker, now_s

    def take(self, group: str | None) -> Worker | None:
        """The one of this group that worked last, if any waits."""
        alike = [worker for worker, _ in self._since.values() if group is not None and worker.group == group]
        if not alike:
            return None
        self.drop(alike[-1])
        return alike[-1]

    def drop(self, worker: Worker) -> None:
        """Forget a worker, should it be waiting."""
        self._since.pop(id(worker), None)

    def overdue(self, now_s: float) -> Sequence[Worker]:
        """Those that have waited too long."""
        return [worker for worker, since_s in self._since.values() if now_s - since_s >= MOST_IDLE_S]

    def patience_s(self, now_s: float) -> Sequence[float]:
        """How much longer each may wait."""
        return [since_s + MOST_IDLE_S - now_s for _, since_s in self._since.values()]


def fit_for_another(worker: Worker, result: CallResult | Lost) -> bool:
    """Whether a process may serve another call of its group: the last one has to have gone well."""
    if worker.group is None or worker.calls >= MOST_CALLS:
        return False
    return isinstance(result, Returned) and not isinstance(result.value, Failure)


def spoils(result: CallResult | Lost) -> bool:
    """Whether the value says that its process should serve nobody else."""
    value = result.value if isinstance(result, Returned) else None
    return isinstance(value, Failure) and value.spoils_worker


def keep_quiet(workers: Sequence[Worker], now_s: float) -> None:
    """Pause the workers that would disturb a call that is to be alone; let all others work.

    Where the device has cores of its own, nothing ever disturbs it. Calls with locks take turns with
    measurements by these; one that paused would never give its locks back.
    """
    calls = [worker.current.call for worker in workers if worker.current is not None]
    quiet = frozenset[int]().union(*(call.cores for call in calls if call.alone and call.cores))
    for worker in workers:
        disturbs = worker.current is not None and _disturbs(worker.current.call, quiet)
        if disturbs and worker.paused_at_s is None:
            worker.pause(now_s)
        elif not disturbs and worker.paused_at_s is not None:
            worker.resume(now_s)


def _disturbs(call: Call, quiet: frozenset[int]) -> bool:
    return not call.alone and not call.locks and call.cores is not None and not call.cores.isdisjoint(quiet)
