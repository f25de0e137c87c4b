"""Workers as the engine of one machine knows them: busy with a call, or idle until a call like the last."""

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
    """A call that a worker carries out."""

    id: str
    call: Call
    started_s: float


@dataclass(slots=True)
class Worker:
    """A process, what it does and what waits for it.

    `group` is that of its last call, none if that shares its process with no other.
    """

    process: WorkerProcess
    name: str | None
    current: Running | None = None
    queue: deque[tuple[str, Call]] = field(default_factory=deque)
    group: str | None = None
    calls: int = 0

    def take_on(self, running: Running) -> None:
        """Begin a call."""
        self.current = running
        self.group = running.call.shares_with
        self.calls += 1


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
