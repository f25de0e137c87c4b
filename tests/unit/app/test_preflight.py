"""Jobs that can't work are refused before their run begins."""

import signal
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from tuneloom.app.runs.submitting import require_usable
from tuneloom.engine.api import EngineReport
from tuneloom.engine.calls import Call, CallResult, Died, KilledBy, Raised, Returned
from tuneloom.errors import ModelError, TargetError
from tuneloom.model import Budget, JobSpec
from tuneloom.testing.engines.scripted import ScriptedEngine

NET = JobSpec(name="net", model="/models/net.onnx", budget=Budget(trials=1))


def engine(**answers: CallResult) -> ScriptedEngine:
    """An engine that finds nothing wrong with a model, except where told so."""

    def answer(call: Call) -> CallResult:
        return answers.get(Path(call.arguments[0]).stem, Returned(value=None))

    return ScriptedEngine(answer)


def test_good_jobs_are_asked_about_once_for_each_model_and_target() -> None:
    asked = engine()
    bound = replace(NET, shapes={"x": (1, 3)})
    require_usable(asked, [NET, replace(NET, name="again"), bound, replace(NET, target="cuda")])
    assert [call.arguments[:4] for call in asked.started] == [
        ("/models/net.onnx", [{}], "cpu", False),
        ("/models/net.onnx", [{"x": (1, 3)}], "cpu", False),
        ("/models/net.onnx", [{}], "cuda", False),
    ]


class SlowEngine(ScriptedEngine):
    """Reports nothing twice before it does."""

    glances = 2

    def __init__(self) -> None:
        super().__init__(lambda _call: Returned(value=None))
        self.at: list[float] = []

    def start(self, call_id: str, call: Call) -> None:
        self.at.append(self.now_s())
        super().start(call_id, call)

    def poll(self, timeout_s: float | None) -> Sequence[EngineReport]:
        self.glances -= 1
        return [] if self.glances >= 0 else super().poll(timeout_s)


def test_what_is_imported_is_told_while_it_takes_time() -> None:
    told: list[str] = []
    require_usable(SlowEngine(), [NET], told.append)
    assert len(told) >= 2 and {words.partition(" …")[0] for words in told} == {"importing net.onnx"}


def test_the_error_of_the_importer_is_raised() -> None:
    asked = engine(net=Returned(value=TargetError("unknown target 'abacus'")))
    with pytest.raises(TargetError, match="abacus"):
        require_usable(asked, [NET])


@pytest.mark.parametrize(
    ("result", "why"),
    [
        (
            Died(cause=KilledBy(signal.SIGSEGV)),
            "the process that read it was killed by SIGSEGV; the file may",
        ),
        (Raised(error="no such graph", trace=""), "no such graph; the file may be damaged, export it again"),
    ],
)
def test_a_model_that_kills_the_importer_is_refused_by_name(result: CallResult, why: str) -> None:
    asked = engine(bad=result)
    with pytest.raises(ModelError, match=rf"bad\.onnx can't be imported: {why}"):
        require_usable(asked, [NET, replace(NET, model="/models/bad.onnx")])


def test_as_many_models_are_looked_at_together_as_there_are_cores(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.sched_getaffinity", lambda _process: {0, 1, 2})
    asked, told = SlowEngine(), list[str]()
    require_usable(asked, [replace(NET, model=f"/models/net{n}.onnx") for n in range(7)], told.append)
    assert told[0].startswith("importing net0.onnx and 2 more …")
    assert asked.at == [0, 0, 0, 1, 1, 1, 2]


def test_the_first_models_stay_where_they_were_opened_and_others_free_their_memory(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("os.sched_getaffinity", lambda _process: {0, 1})
    asked = engine()
    require_usable(asked, [replace(NET, model=f"/models/net{n}.onnx") for n in range(7)])
    workers = [call.worker for call in asked.started]
    assert len(set(workers)) == 7 and None not in workers
    assert asked.released == workers[4:]


def test_the_error_of_the_first_job_is_raised_whichever_answer_comes_first() -> None:
    asked = engine(b=Returned(value=ModelError("b is damaged")), c=Returned(value=ModelError("c is damaged")))
    with pytest.raises(ModelError, match="b is damaged"):
        require_usable(asked, [replace(NET, model=f"/models/{name}.onnx") for name in "abc"])


def test_a_refused_model_stays_nowhere() -> None:
    asked = engine(net=Returned(value=ModelError("net.onnx: damaged")))
    with pytest.raises(ModelError):
        require_usable(asked, [NET])
    assert asked.released == [asked.started[0].worker]


def test_jobs_without_a_model_file_are_not_asked_about() -> None:
    asked = engine()
    require_usable(asked, [replace(NET, tuner="mock", model="mock:tasks=1")])
    assert asked.started == []
