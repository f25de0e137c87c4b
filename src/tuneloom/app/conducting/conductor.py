"""The loop that joins core, engine and programs: ends of calls in, starts of calls out."""

from collections.abc import Callable, Sequence

from tuneloom.app.conducting.dispatch import Dispatch, JobEnd
from tuneloom.app.conducting.hearing import Hearing
from tuneloom.app.conducting.inbox import Answered
from tuneloom.app.conducting.listening import Listener
from tuneloom.app.conducting.programs import Arrivals, Program, Step
from tuneloom.engine.api import Engine
from tuneloom.engine.calls import Call, ReadFiles
from tuneloom.engine.machine import Fleet
from tuneloom.scheduling import Core
from tuneloom.scheduling.messages import (
    Event,
    JobCancelled,
    JobPaused,
    JobReprioritised,
    JobResumed,
    JobSubmitted,
    ShareUsed,
)

_BEAT_S = 0.25


class Conductor:
    """Runs programs until all have ended; one thread, no locks.

    A turn takes in all that the engine reports, which changes tables in memory and keeps what programs
    found; then that is committed, and only then what follows from it is started. An error in a program's
    own code, or in keeping what it found, ends that job; all others go on.
    """

    def __init__(self, core: Core, engine: Engine, listener: Listener) -> None:
        self.core = core
        self._listener = listener
        self._arrivals = Arrivals()
        self._dispatch = Dispatch(core, engine, listener)
        self._hearing = Hearing(self._dispatch, listener)
        self._inbox = self._dispatch.inbox
        self._programs = self._dispatch.programs
        self._looked_s = 0.0
        self.now_s = self._dispatch.now_s
        self.zero_s = self._dispatch.zero_s

    def add_machine(self, machine: Fleet) -> None:
        """Use a machine, or several, known from the start; later ones are reported by the engine."""
        for offer in machine.offers:
            self._dispatch.inventory.joined(offer)

    def submit(self, program: Program, at_s: float = 0.0, reads: ReadFiles | None = None) -> None:
        """Take a program in, now or when its time comes; its calls may read these files."""
        if reads is not None:
            self._dispatch.inventory.placing.note_files(program.ticket.id, reads)
        self._arrivals.add(program, at_s)

    def ask(self, name: str, calls: Sequence[Call], answered: Answered) -> None:
        """Carry out calls beside the programs; what they came to is told while the others go on."""
        self._inbox.ask(name, calls, answered)

    def drop_question(self, name: str) -> bool:
        """Want no answer any more; whether there was such a question."""
        return self._inbox.drop_question(name)

    def cancel(self, job: str) -> None:
        """End a job; what it kept is committed."""
        if self._arrivals.cancel(job):
            self._dispatch.note_end(JobEnd(job=job, cancelled=True))
        self._tell_if_known(job, JobCancelled(at_s=self.now_s(), job=job))

    def abandon(self, job: str) -> None:
        """End a job that is not ours any more: nobody is told, and it may be submitted again later."""
        self._arrivals.cancel(job)
        self._inbox.drop_question(job)
        self._dispatch.abandon(job)

    def pause(self, job: str) -> None:
        """Start no new stage of a job; one that has yet to come will come paused."""
        self._arrivals.pause(job)
        self._tell_if_known(job, JobPaused(at_s=self.now_s(), job=job))

    def resume(self, job: str) -> None:
        """Resume a paused job."""
        self._arrivals.resume(job)
        self._tell_if_known(job, JobResumed(at_s=self.now_s(), job=job))

    def prioritise(self, job: str, priority: int) -> None:
        """Give a job another priority, also one that has yet to come."""
        if job not in self._programs:
            self._arrivals.prioritise(job, priority)
        self._tell_if_known(job, JobReprioritised(at_s=self.now_s(), job=job, priority=priority))

    def share_used(self, share: str, key: str, seconds: float) -> None:
        """Let count here what jobs of a share used of devices elsewhere."""
        self._dispatch.tell(ShareUsed(at_s=self.now_s(), share=share, key=key, seconds=seconds))

    @property
    def idle(self) -> bool:
        """Whether nothing runs and nothing is to come."""
        return not self._programs and not self._arrivals and not self._inbox.has_questions

    def run(self, keep_waiting: Callable[[], bool] = lambda: False) -> None:
        """Go on until every job has ended and nobody asks to keep waiting."""
        for report in self._inbox.present():  # resources that are there already, before a job is refused
            self._hearing.hear(report)
        self._dispatch.carry_out()
        while not self.idle or keep_waiting():
            self._admit()
            self._dispatch.carry_out()
            self._listener.beat(self.now_s())
            self._dispatch.carry_out()
            for report in self._inbox.reports(self._patience_s()):
                self._hearing.hear(report)
            self._look_around()
            self._dispatch.carry_out()

    def _look_around(self) -> None:
        """See to what nobody reports, about as often as the beat goes."""
        now_s = self.now_s()
        if now_s - self._looked_s >= _BEAT_S:
            self._looked_s = now_s
            self._dispatch.inventory.try_again()
            self._hearing.give_up_overdue()

    def _patience_s(self) -> float:
        return max(0.0, min(_BEAT_S, self._arrivals.next_s - self.now_s()))

    def _admit(self) -> None:
        for program in self._arrivals.come(self.now_s()):
            job, now_s = program.ticket.id, self.now_s()
            self._programs.add(program)
            steps: Sequence[Step] = ()
            with self._programs.blaming(job):
                steps = program.begin(now_s)
            if self._programs.is_broken(job):
                continue
            self._dispatch.underway.add(job, steps, now_s)
            ready = tuple(step.request for step in steps)
            self._dispatch.tell(JobSubmitted(at_s=now_s, ticket=program.ticket, ready=ready))
            if self._arrivals.is_paused(job):
                self.pause(job)

    def _tell_if_known(self, job: str, event: Event) -> None:
        if job in self._programs:
            self._dispatch.tell(event)
