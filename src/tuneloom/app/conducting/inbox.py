"""What the engine reports and nobody has heard yet, and calls that belong to no program."""

from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from tuneloom.engine.api import Engine
from tuneloom.engine.calls import Call, CallEnded, CallResult, Lost
from tuneloom.engine.reports import EngineReport, MachineLost

Answered = Callable[[CallResult | Lost], None]
"""Told how a call ended that belongs to no program."""

_QUESTION = "\x1fquestion:"


@dataclass(frozen=True, slots=True)
class _Question:
    """A call that belongs to no program; `machine` is where it is carried out, if that was said."""

    answered: Answered
    machine: str | None


class Inbox:
    """Reports in the order in which they came; one that could not be heard because of an error waits.

    Calls are stopped here, so that the end of one that was stopped is never heard, even if its id is
    used again. Questions are calls beside the programs; nothing waits for their ends.
    """

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._unheard: deque[EngineReport] = deque()
        self._questions: dict[str, _Question] = {}

    @property
    def has_questions(self) -> bool:
        """Whether somebody waits for an answer."""
        return bool(self._questions)

    def stop(self, call_id: str) -> None:
        """End a call, and hear no more of it."""
        self._engine.stop(call_id)
        ended = [r for r in self._unheard if isinstance(r, CallEnded) and r.id == call_id]
        for report in ended:
            self._unheard.remove(report)

    def ended_here(self, call_id: str, result: CallResult) -> None:
        """Report the end of a call that never began."""
        now_s = self._engine.now_s()
        self._unheard.append(CallEnded(id=call_id, result=result, started_s=now_s, ended_s=now_s))

    def ask(self, name: str, call: Call, answered: Answered) -> None:
        """Begin a call that belongs to no program; the answer comes while reports are heard."""
        machine = call.place.machine if call.place is not None else None
        self._questions[name] = _Question(answered, machine)
        self._engine.start(_QUESTION + name, call)

    def drop_question(self, name: str) -> bool:
        """Want no answer any more; whether there was such a question."""
        if self._questions.pop(name, None) is None:
            return False
        self.stop(_QUESTION + name)
        return True

    def reports(self, patience_s: float) -> Iterator[EngineReport]:
        """What is to be heard, waiting for the first; answers go to those who asked."""
        self._collect(0 if self._unheard else patience_s)
        while self._unheard:
            yield from self._next()

    def present(self) -> Iterator[EngineReport]:
        """All that can be heard without waiting, what comes meanwhile included."""
        while self._unheard or self._collect(0):
            yield from self._next()

    def _collect(self, patience_s: float) -> bool:
        reports = self._engine.poll(patience_s)
        self._unheard += reports
        return bool(reports)

    def _next(self) -> Iterator[EngineReport]:
        report = self._unheard.popleft()
        if isinstance(report, CallEnded) and report.id.startswith(_QUESTION):
            self._answer(report.id.removeprefix(_QUESTION), report.result)
            return
        if isinstance(report, MachineLost):  # the engine has forgotten the calls there
            for name in [name for name, asked in self._questions.items() if asked.machine == report.name]:
                self._answer(name, Lost(reason=report.reason))
        yield report

    def _answer(self, name: str, result: CallResult | Lost) -> None:
        question = self._questions.pop(name, None)
        if question is not None:
            question.answered(result)
