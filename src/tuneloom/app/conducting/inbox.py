"""What the engine reports and nobody has heard yet, and calls that belong to no program."""

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from tuneloom.engine.api import Engine, EngineReport, MachineLost
from tuneloom.engine.calls import Call, CallEnded, CallResult, Lost

Answered = Callable[[Sequence[CallResult | Lost]], None]
"""Told how calls ended that belong to no program, in the order in which they were asked."""

_QUESTION = "\x1fquestion:"


@dataclass(slots=True)
class _Question:
    """Calls that belong to no program, by their ids, and how those ended that have."""

    answered: Answered
    calls: dict[str, Call]
    answers: dict[str, CallResult | Lost] = field(default_factory=dict)

    def on_machine(self, name: str) -> list[str]:
        """The calls that a machine still has to answer."""
        placed = {id: call.place for id, call in self.calls.items() if id not in self.answers}
        return [id for id, place in placed.items() if place is not None and place.machine == name]


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

    def ask(self, name: str, calls: Sequence[Call], answered: Answered) -> None:
        """Begin calls that belong to no program, side by side; the answers come while reports are heard."""
        ids = {f"{_QUESTION}{number}:{name}": call for number, call in enumerate(calls)}
        self._questions[name] = _Question(answered, ids)
        for id, call in ids.items():
            self._engine.start(id, call)

    def drop_question(self, name: str) -> bool:
        """Want no answer any more; whether there was such a question."""
        question = self._questions.pop(name, None)
        for id in question.calls if question is not None else ():
            self.stop(id)
        return question is not None

    def reports(self, patience_s: float) -> Iterator[EngineReport]:
        """What is to be heard, waiting for the first; answers go to those who asked."""
        self._collect(0 if self._unheard else patience_s)
        while self._unheard:
            report = self._unheard.popleft()
            if not self._answers(report):
                yield report

    def present(self) -> Iterator[EngineReport]:
        """All that can be heard without waiting, what comes meanwhile included."""
        while self._unheard or self._collect(0):
            yield from self.reports(0)

    def _collect(self, patience_s: float) -> bool:
        reports = self._engine.poll(patience_s)
        self._unheard += reports
        return bool(reports)

    def _answers(self, report: EngineReport) -> bool:
        """Whether a report is for nobody but those who asked; what it says goes to them."""
        if isinstance(report, CallEnded) and report.id.startswith(_QUESTION):
            self._answer(report.id, report.result)
            return True
        if isinstance(report, MachineLost):  # the engine has forgotten the calls there
            asked = [id for each in self._questions.values() for id in each.on_machine(report.name)]
            for id in asked:
                self._answer(id, Lost(reason=report.reason))
        return False

    def _answer(self, id: str, result: CallResult | Lost) -> None:
        """Note an answer; whoever asked is told when all are there."""
        name = id.removeprefix(_QUESTION).partition(":")[2]
        question = self._questions.get(name)
        if question is None or id not in question.calls:
            return
        question.answers[id] = result
        if len(question.answers) == len(question.calls):
            del self._questions[name]
            question.answered([question.answers[each] for each in question.calls])
