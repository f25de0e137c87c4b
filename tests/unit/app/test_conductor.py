"""Core, engine and programs joined, under a scripted engine."""

from collections.abc import Sequence
from itertools import pairwise

import pytest

from support.jobs.mock import MockJob, MockStage
from support.jobs.small import small_spec, small_task
from support.jobs.task_job import TaskJob, tune_tasks
from tuneloom.app.conducting.conductor import Conductor
from tuneloom.app.conducting.listening import Listener
from tuneloom.engine.api import EngineReport, MachineLost
from tuneloom.engine.calls import Call, CallResult, Lost, Place, Returned
from tuneloom.engine.machine import Fleet, Offer
from tuneloom.errors import StoreError
from tuneloom.model import Device, Host, JobSpec, Trial
from tuneloom.scheduling import Core, policy_named
from tuneloom.store import SpanRecord
from tuneloom.testing.engines.scripted import ScriptedEngine
from tuneloom.testing.jobs.fake_stages import FakeStages

POLICIES = ["load-aware", "interleaved", "sequential", "synchronous"]
TASKS = [small_task("a"), small_task("b"), small_task("c")]


def machine(*, resident: bool = False) -> Fleet:
    host = Offer(resource=Host(name="host", slots=2), cores=frozenset({0, 1}))
    device = Device(name="cpu0", key="cpu")
    return Fleet(offers=(host, Offer(resource=device, cores=frozenset({2}), resident=resident)))


class Heard(Listener):
    def __init__(self) -> None:
        self.spans: list[SpanRecord] = []
        self.ended: list[tuple[str, bool]] = []
        self.refused: list[str] = []

    def ran(self, span: SpanRecord) -> None:
        self.spans.append(span)

    def job_ended(self, job: str, *, cancelled: bool) -> None:
        self.ended.append((job, cancelled))

    def job_refused(self, job: str, reason: str) -> None:
        self.refused.append(reason)


def job(name: str, spec: JobSpec) -> TaskJob:
    return TaskJob(name, spec, TASKS, lambda _task, _trial, _artifact: None, lanes=3, workers=2)


def conducted(engine: ScriptedEngine, heard: Heard, *jobs: tuple[TaskJob, float]) -> Conductor:
    conductor = Conductor(Core(policy_named("load-aware")), engine, heard)
    conductor.add_machine(machine())
    for program, at_s in jobs:
        conductor.submit(program, at_s)
    return conductor


def overlaps(spans: Sequence[SpanRecord]) -> int:
    """How many spans start before an earlier one has ended."""
    ordered = sorted(spans, key=lambda span: span.start_s)
    return sum(late.start_s < early.end_s for early, late in pairwise(ordered))


@pytest.mark.parametrize("policy", POLICIES)
def test_a_job_is_carried_out_to_its_last_trial_under_every_policy(policy: str) -> None:
    heard = Heard()
    engine = ScriptedEngine(FakeStages())
    tuning = tune_tasks(TASKS, small_spec(40), engine, machine(), policy=policy, listener=heard)
    assert tuning.spent == 40
    assert heard.ended == [("net", False)]
    assert {span.kind for span in heard.spans} == {"select", "build", "profile", "update"}


@pytest.mark.parametrize("policy", ["load-aware", "interleaved", "sequential"])
def test_the_device_is_held_by_one_stage_at_a_time(policy: str) -> None:
    heard = Heard()
    tune_tasks(TASKS, small_spec(40), ScriptedEngine(FakeStages()), machine(), policy=policy, listener=heard)
    assert overlaps([span for span in heard.spans if span.resource == "cpu0"]) == 0


def test_stages_run_on_the_cores_of_their_resource() -> None:
    engine = ScriptedEngine(FakeStages())
    tune_tasks(TASKS, small_spec(12), engine, machine())
    cores = {(call.function.partition(":")[2] == "profile", call.cores) for call in engine.started}
    assert cores == {(True, frozenset({2})), (False, frozenset({0, 1}))}


def test_stages_on_a_device_with_an_owner_go_to_that_one_process() -> None:
    engine = ScriptedEngine(FakeStages())
    tune_tasks(TASKS, small_spec(12), engine, machine(resident=True))
    profiles = [call for call in engine.started if call.function.endswith(":profile")]
    assert profiles and {call.worker for call in profiles} == {"resident:cpu0"}


def test_jobs_come_when_their_time_comes() -> None:
    heard = Heard()
    engine = ScriptedEngine(FakeStages())
    conductor = conducted(
        engine, heard, (job("late", small_spec(4)), 100.0), (job("early", small_spec(4)), 0.0)
    )
    conductor.run()
    assert [name for name, _ in heard.ended] == ["early", "late"]
    assert min(span.start_s for span in heard.spans if span.job == "late") >= 100.0
    assert conductor.idle


@pytest.mark.parametrize("policy", POLICIES)
def test_what_is_needless_when_its_turn_comes_is_neither_started_nor_reported(policy: str) -> None:
    heard, engine = Heard(), ScriptedEngine(FakeStages())
    tuning = tune_tasks(
        TASKS, small_spec(1000, seconds=20.0), engine, machine(), policy=policy, listener=heard
    )
    builds = [call for call in engine.started if call.function.endswith(":build")]
    assert 0 < tuning.spent == len(builds) == sum(span.kind == "build" for span in heard.spans)
    assert heard.ended == [("net", False)]
    assert max(span.start_s for span in heard.spans if span.kind == "build") <= 20.0


def test_jobs_with_the_same_seconds_share_them_whoever_comes_first() -> None:
    def takes_s(call: Call) -> float:
        return 0.03 if call.function.endswith((":profile", ":update")) else 1.0

    spec, tasks = small_spec(1000, batch=8, seconds=60.0), [small_task(name) for name in "abcdef"]
    jobs = [TaskJob(f"j{number}", spec, tasks, lambda *_: None, lanes=6, workers=1) for number in range(8)]
    host, device = Host(name="host", slots=8), Device(name="gpu", key="cpu")
    conductor = Conductor(Core(policy_named("load-aware")), ScriptedEngine(FakeStages(), takes_s), Heard())
    conductor.add_machine(Fleet(offers=(Offer(resource=host), Offer(resource=device, resident=True))))
    for number, each in enumerate(jobs):
        conductor.submit(each, float(number))
    conductor.run()
    spent = [each.tuning.spent for each in jobs]
    assert max(spent) < 3 * min(spent), spent


def test_a_cancelled_job_is_stopped_and_the_other_goes_on() -> None:
    heard = Heard()

    def cancel_first(call: Call) -> float:
        if len(engine.started) == 10:
            conductor.cancel("one")
        return 1.0

    engine = ScriptedEngine(FakeStages(), cancel_first)
    one, two = job("one", small_spec(1000)), job("two", small_spec(20))
    conductor = conducted(engine, heard, (one, 0.0), (two, 0.0))
    conductor.run()
    assert sorted(heard.ended) == [("one", True), ("two", False)]
    assert one.tuning.spent < 1000 and two.tuning.spent == 20


def test_a_lost_search_worker_costs_its_stage_only() -> None:
    stages = FakeStages()
    stages.crash_at_next("select")
    heard = Heard()
    tuning = tune_tasks(TASKS, small_spec(60), ScriptedEngine(stages), machine(), listener=heard)
    assert tuning.spent == 60


def test_no_trial_is_made_twice_whatever_the_order_of_ends() -> None:
    kept: list[tuple[str, str]] = []

    def keep(task: object, trial: Trial, _artifact: object) -> None:
        kept.append((task.name, trial.candidate.key))  # type: ignore[attr-defined]

    uneven = {"build": 3.0, "profile": 0.5, "select": 7.0, "open_and_select": 2.0, "update": 0.1}
    engine = ScriptedEngine(FakeStages(), lambda call: uneven[call.function.partition(":")[2]])
    program = TaskJob("job", small_spec(80), TASKS, keep, lanes=3, workers=2)
    conducted(engine, Heard(), (program, 0.0)).run()
    assert len(kept) == len(set(kept)) == 80


def test_programs_go_on_while_a_question_beside_them_waits_for_its_answer() -> None:
    class Curious(Heard):
        asked = False

        def beat(self, now_s: float) -> None:
            if now_s > 2.0 and not self.asked:
                self.asked = True
                conductor.ask("who", [Call(function="m:aside")], answers.extend)

    answers: list[object] = []
    stages, heard = FakeStages(), Curious()
    engine = ScriptedEngine(
        lambda call: Returned(value="here") if call.function == "m:aside" else stages(call),
        lambda call: 300.0 if call.function == "m:aside" else 1.0,
    )
    conductor = conducted(engine, heard, (job("one", small_spec(trials=8)), 0.0))
    conductor.run()
    assert answers == [Returned(value="here")] and heard.ended == [("one", False)]
    assert max(span.end_s for span in heard.spans) < 300.0, "no stage waited for the answer"


def test_a_question_that_was_dropped_is_stopped_and_its_answer_is_never_heard() -> None:
    engine, heard = ScriptedEngine(lambda _call: Returned(value="late")), Heard()
    conductor = conducted(engine, heard)
    conductor.ask("who", [Call(function="m:aside")], lambda _results: pytest.fail("nobody wants to know"))
    assert conductor.drop_question("who") and not conductor.drop_question("who")
    assert conductor.idle and len(engine.stopped) == 1
    conductor.run()


def test_what_was_reported_with_an_end_that_could_not_be_kept_is_heard_when_the_run_goes_on() -> None:
    class Full(Heard):
        lost = ""

        def ran(self, span: SpanRecord) -> None:
            if not self.lost and len(engine.started) > 6:
                self.lost = span.job
                raise StoreError("another executor has its run")
            super().ran(span)

    class Bursts(ScriptedEngine):
        """Reports ends two at a time."""

        def poll(self, timeout_s: float | None) -> Sequence[EngineReport]:
            return [*super().poll(timeout_s), *super().poll(0)]

    heard = Full()
    engine = Bursts(FakeStages())
    conductor = conducted(engine, heard, (job("one", small_spec(8)), 0.0), (job("two", small_spec(8)), 0.0))
    with pytest.raises(StoreError):
        conductor.run()
    conductor.cancel(heard.lost)
    conductor.run()
    assert sorted(heard.ended) == [(name, name == heard.lost) for name in ("one", "two")]


def test_a_priority_that_a_job_got_before_it_was_submitted_counts() -> None:
    conductor = conducted(ScriptedEngine(FakeStages()), Heard())
    late = job("late", small_spec(4))
    conductor.prioritise("late", 7)
    conductor.submit(late, 5.0)
    assert late.ticket.priority == 7


def waiting_job(name: str) -> MockJob:
    return MockJob(name, [MockStage(kind="build", call=Call(function="m:build"))])


def one_slot(engine: ScriptedEngine, listener: Listener, *names: str) -> Conductor:
    conductor = Conductor(Core(policy_named("load-aware")), engine, listener)
    conductor.add_machine(Fleet(offers=(Offer(resource=Host(name="host", slots=1)),)))
    for name in names:
        conductor.submit(waiting_job(name))
    return conductor


def test_an_error_while_the_end_of_one_job_is_told_keeps_no_other_from_starting() -> None:
    class Full(Heard):
        def job_ended(self, job: str, *, cancelled: bool) -> None:
            super().job_ended(job, cancelled=cancelled)
            if job == "one":
                raise StoreError("another executor has its run")

    heard, engine = Full(), ScriptedEngine(lambda _call: Returned(value=None))
    conductor = one_slot(engine, heard, "one", "two")
    with pytest.raises(StoreError):
        conductor.run()
    assert len(engine.started) == 2, "the slot of the first went to the second at once"
    conductor.run()
    assert heard.ended == [("one", False), ("two", False)]


def test_nothing_is_started_before_what_it_follows_from_is_committed() -> None:
    class Committing(Heard):
        """Remembers which trials were committed when a search was told of them."""

        def commit(self) -> None:
            committed.extend(kept[len(committed) :])

    kept: list[Trial] = []
    committed: list[Trial] = []
    told: list[int] = []

    def keep(_task: object, trial: Trial, _artifact: object) -> None:
        kept.append(trial)

    def takes_s(call: Call) -> float:
        if call.function.endswith(":update"):
            told.append(len(kept) - len(committed))
        return 1.0

    class Bursts(ScriptedEngine):
        """Reports what ends at the same time at once."""

        def poll(self, timeout_s: float | None) -> Sequence[EngineReport]:
            reports = list(super().poll(timeout_s))
            while more := super().poll(0):
                reports += more
            return reports

    program = TaskJob("job", small_spec(40), TASKS, keep, lanes=3, workers=2)
    conducted(Bursts(FakeStages(), takes_s), Committing(), (program, 0.0)).run()
    assert len(committed) == 40 and told and set(told) == {0}


def test_a_job_that_was_abandoned_ends_without_a_word_and_can_be_submitted_again() -> None:
    heard, engine = Heard(), ScriptedEngine(lambda _call: Returned(value=None), lambda _call: 100.0)
    conductor = one_slot(engine, heard, "one")
    conductor._admit()
    conductor._dispatch.carry_out()
    conductor.abandon("one")
    assert conductor.idle and len(engine.stopped) == 1
    conductor.submit(waiting_job("one"))
    conductor.run()
    conductor.core.check()
    assert heard.ended == [("one", False)] and len(engine.started) == 2


def test_a_question_to_a_machine_that_is_lost_is_answered() -> None:
    engine = ScriptedEngine(lambda _call: Returned(value=None), lambda _call: 5.0)
    answers: list[CallResult | Lost] = []
    conductor = conducted(engine, Heard())
    place = Place(resource="there/board", machine="there")
    conductor.ask("who", [Call(function="m:here"), Call(function="m:there", place=place)], answers.extend)
    engine.happens(1.0, MachineLost(name="there", reason="it left the cluster"))
    conductor.run()
    assert answers == [Returned(value=None), Lost(reason="it left the cluster")]
    assert len(engine.started) == 2, "both were asked at once"
    assert conductor.now_s() < 10.0
