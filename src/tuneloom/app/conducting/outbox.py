"""What was decided and not carried out yet: calls to start, and ends of jobs to tell."""

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass

from tuneloom.app.conducting.listening import Listener
from tuneloom.scheduling.messages import StartStage


@dataclass(frozen=True, slots=True, kw_only=True)
class JobEnd:
    """A job holds nothing any more: it finished, was cancelled, was refused, or its own code raised."""

    job: str
    cancelled: bool = False
    refusal: str = ""
    error: Exception | None = None

    def tell(self, listener: Listener) -> None:
        """Let somebody know."""
        if self.error is not None:
            listener.job_failed(self.job, self.error)
        elif self.refusal:
            listener.job_refused(self.job, self.refusal)
        else:
            listener.job_ended(self.job, cancelled=self.cancelled)


class Outbox:
    """Commands in the order in which they came; what could not be carried out because of an error waits.

    Whoever iterates takes out: nothing is carried out twice, and whatever happens meanwhile may add more.
    """

    def __init__(self) -> None:
        self._starts: dict[str, StartStage] = {}
        self._ends: deque[JobEnd] = deque()

    def __bool__(self) -> bool:
        return bool(self._starts or self._ends)

    def start(self, call_id: str, command: StartStage) -> None:
        """A stage is to be started."""
        self._starts[call_id] = command

    def drop_start(self, call_id: str) -> bool:
        """A stage is not to be started after all; whether it was to be."""
        return self._starts.pop(call_id, None) is not None

    def end(self, end: JobEnd) -> None:
        """The end of a job is to be told."""
        self._ends.append(end)

    def drop_end(self, job: str) -> None:
        """The end of a job is not to be told after all."""
        self._ends = deque(end for end in self._ends if end.job != job)

    def starts(self) -> Iterator[tuple[str, StartStage]]:
        """The stages to start; they are not here any more."""
        while self._starts:
            call_id = next(iter(self._starts))
            yield call_id, self._starts.pop(call_id)

    def ends(self) -> Iterator[JobEnd]:
        """The ends to tell; they are not here any more."""
        while self._ends:
            yield self._ends.popleft()
