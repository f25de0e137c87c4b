"""What the engine reports and nobody has heard yet, and calls that belong to no program."""

from collections import deque
from collections.abc import Callable, Iterator

from tuneloom.engine.api import Engine
from tuneloom.engine.calls import Call, CallEnded, CallResult, Lost
from tuneloom.engine.reports import EngineReport

Answered = Callable[[CallResult | Lost], None]
"""Told how a call ended that belongs to no program."""

_QUESTION = "\x1fquestion:"


class Inbox:
    """Reports in the order in which they came; one that could not be heard because of an error waits.

    Calls are started and stopped here, so that the end of one that was stopped is never heard, even if its
    id is used again. Questions are calls beside the programs; nothing waits for their ends.
    """

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._unheard: deque[EngineReport] = deque()
        self._questions: dict[str, Answered] = {}

    @property
    def has_questions(self) -> bool:
        """Whether somebody waits for an answer."""
        return bool(self._questions)

    def start(self, call_id: str, call: Call) -> None:
        """Begin a call; its end is among the reports."""
        self._engine.start(call_id, call)

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
        self._questions[name] = answered
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
            self._answer(report)
        else:
            yield report

    def _answer(self, ended: CallEnded) -> None:
        answered = self._questions.pop(ended.id.removeprefix(_QUESTION), None)
        if answered is not None:
            answered(ended.result)
