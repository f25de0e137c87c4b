"""Programs whose time has not come yet, and what was wanted of them meanwhile."""

from collections.abc import Iterator
from dataclasses import replace

from tuneloom.app.conducting.programs import Program


class Arrivals:
    """Programs by the time at which they come; what is wanted of one counts even before it is added."""

    def __init__(self) -> None:
        self._coming: list[tuple[float, Program]] = []
        self._paused: set[str] = set()
        self._priorities: dict[str, int] = {}

    def __bool__(self) -> bool:
        return bool(self._coming)

    @property
    def next_s(self) -> float:
        """When the next one comes; infinite if none will."""
        return self._coming[0][0] if self._coming else float("inf")

    def add(self, program: Program, at_s: float) -> None:
        """Let a program come at some time."""
        priority = self._priorities.pop(program.ticket.id, None)
        if priority is not None:
            program.ticket = replace(program.ticket, priority=priority)
        self._coming.append((at_s, program))
        self._coming.sort(key=lambda pair: pair[0])

    def come(self, now_s: float) -> Iterator[Program]:
        """The programs whose time has come; they are not here any more."""
        while self._coming and self._coming[0][0] <= now_s:
            yield self._coming.pop(0)[1]

    def cancel(self, job: str) -> bool:
        """Let a job never come, and forget what was wanted of it; whether it was to come."""
        self._paused.discard(job)
        self._priorities.pop(job, None)
        staying = [pair for pair in self._coming if pair[1].ticket.id != job]
        was_coming = len(staying) < len(self._coming)
        self._coming = staying
        return was_coming

    def pause(self, job: str) -> None:
        """Let a job come paused."""
        self._paused.add(job)

    def resume(self, job: str) -> None:
        """Let a job come as it is."""
        self._paused.discard(job)

    def is_paused(self, job: str) -> bool:
        return job in self._paused

    def prioritise(self, job: str, priority: int) -> None:
        """Let a job come with this priority, whether its program is here already or is yet to be added."""
        coming = [program for _, program in self._coming if program.ticket.id == job]
        for program in coming:
            program.ticket = replace(program.ticket, priority=priority)
        if not coming:
            self._priorities[job] = priority
