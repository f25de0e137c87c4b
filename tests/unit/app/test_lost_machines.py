"""Machines, devices and calls that get lost: no candidate is blamed, everything is done in the end."""

from collections.abc import Callable, Sequence

from support.jobs.mock import MockJob, MockStage
from support.jobs.small import small_spec, small_task
from support.jobs.task_job import TaskJob
from tuneloom.app.conducting.conductor import Conductor
from tuneloom.app.conducting.listening import Listener
from tuneloom.engine.api import EngineReport, MachineLost, ResourceJoined, ResourceLeft
from tuneloom.engine.calls import Call, CallEnded, CallResult, Lost, Place, Returned
from tuneloom.engine.machine import Fleet, Offer
from tuneloom.model import Device, Host
from tuneloom.scheduling import Core, policy_named
from tuneloom.scheduling.messages import Command, Event, ResourceAdded, ResourceLost
from tuneloom.testing.engines.scripted import ScriptedEngine
from tuneloom.testing.jobs.fake_stages import FakeStages

TASKS = [small_task("a"), small_task("b"), small_task("c")]


def machine(name: str, *, slots: int = 2) -> Fleet:
    host = Host(name=f"{name}/host", slots=slots, machine=name)
    device = Device(name=f"{name}/cpu0", key="cpu", machine=name)
    offers = (Offer(resource=host, cores=frozenset({0, 1})), Offer(resource=device, cores=frozenset({2})))
    return Fleet(offers=offers)


class Heard(Listener):
    def __init__(self) -> None:
        self.events: list[Event] = []
        self.ended: list[tuple[str, bool]] = []
        self.left: list[tuple[str, str]] = []
        self.joined: list[str] = []

    def happened(self, event: Event, commands: Sequence[Command]) -> None:
        self.events.append(event)

    def resource_joined(self, offer: Offer, at_s: float) -> None:
        self.joined.append(offer.resource.name)

    def resource_left(self, name: str, reason: str, at_s: float) -> None:
        self.left.append((name, reason))

    def job_ended(self, job: str, *, cancelled: bool) -> None:
        self.ended.append((job, cancelled))


def conductor_on(engine: ScriptedEngine, heard: Heard, *machines: Fleet) -> Conductor:
    conductor = Conductor(Core(policy_named("load-aware")), engine, heard)
    for each in machines:
        conductor.add_machine(each)
    return conductor


def tuning_job(trials: int) -> TaskJob:
    return TaskJob("net", small_spec(trials), TASKS, lambda *_: None, lanes=3, workers=2)


def test_a_call_travels_with_the_place_that_was_granted_to_it() -> None:
    engine, heard = ScriptedEngine(FakeStages()), Heard()
    conductor = conductor_on(engine, heard, machine("one"))
    conductor.submit(tuning_job(12))
    conductor.run()
    places = {call.function.partition(":")[2]: call.place for call in engine.started}
    assert places["build"] == Place(resource="one/host", machine="one")
    assert places["profile"] == Place(resource="one/cpu0", machine="one")


def test_a_lost_call_is_repeated_and_is_no_failure_of_its_candidate() -> None:
    stages, lost = FakeStages(), []

    def answer(call: Call) -> CallResult | Lost:
        if call.function.endswith((":build", ":profile")) and len(lost) < 5:
            lost.append(call)
            return Lost(reason="its machine is gone")
        return stages(call)

    program, heard = tuning_job(40), Heard()
    conductor = conductor_on(ScriptedEngine(answer), heard, machine("one"))
    conductor.submit(program)
    conductor.run()
    assert len(lost) == 5 and heard.ended == [("net", False)]
    assert program.tuning.spent == 40
    assert not any(progress.failures for progress in program.tuning.tasks)


def test_a_lost_machine_costs_no_trial_and_its_searches_are_opened_again_from_the_known_trials() -> None:
    stages, program, heard = FakeStages(), tuning_job(120), Heard()
    engine = ScriptedEngine(stages)
    engine.happens(20.5, MachineLost(name="one", reason="no heartbeat"))
    conductor = conductor_on(engine, heard, machine("one"), machine("two"))
    conductor.submit(program)
    conductor.run()
    assert heard.ended == [("net", False)] and program.tuning.spent == 120
    assert not any(progress.failures for progress in program.tuning.tasks)
    assert {name for name, _ in heard.left} == {"one/host", "one/cpu0"}
    reopened = [known for _, known in stages.opened_with[len(TASKS) :]]
    assert reopened and min(reopened) > 0
    assert all(call.place and call.place.machine == "two" for call in engine.started[-40:])


def test_a_search_stays_on_the_machine_where_it_was_opened() -> None:
    engine, heard, program = ScriptedEngine(FakeStages()), Heard(), tuning_job(120)
    conductor = conductor_on(engine, heard, machine("one", slots=1), machine("two", slots=1))
    conductor.submit(program)
    conductor.run()
    places = {(call.worker, call.place and call.place.machine) for call in engine.started if call.worker}
    assert len(places) == 2 and {worker for worker, _ in places} == {"net:tuner0", "net:tuner1"}
    assert {call.place and call.place.machine for call in engine.started} == {"one", "two"}


def test_a_job_waits_for_a_device_that_joins_later() -> None:
    engine, heard = ScriptedEngine(lambda _call: Returned(value=None)), Heard()
    gpu = Offer(resource=Device(name="gpu0", key="gpu"), resident=True)
    engine.happens(30.0, ResourceJoined(offer=gpu))
    stage = MockStage(kind="profile", call=Call(function="x:y"), device_key="gpu")
    job = MockJob("waits", [stage], waits_for_devices=True)
    conductor = conductor_on(engine, heard, machine("one"))
    conductor.submit(job)
    conductor.run()
    assert heard.ended == [("waits", False)] and engine.now_s() >= 31.0
    assert heard.joined == ["one/host", "one/cpu0", "gpu0"]
    assert [call.worker for call in engine.started] == ["resident:gpu0"]


def test_the_core_hears_of_resources_that_come_and_go_while_a_job_runs() -> None:
    engine, heard = ScriptedEngine(FakeStages()), Heard()
    more = machine("two")
    engine.happens(3.0, ResourceJoined(offer=more.offers[0]))
    engine.happens(3.0, ResourceJoined(offer=more.offers[1]))
    engine.happens(9.5, ResourceLeft(name="two/cpu0", reason="unplugged"))
    engine.happens(9.5, ResourceLeft(name="nobody knows it", reason="unplugged"))
    engine.happens(15.0, ResourceJoined(offer=more.offers[1]))
    conductor = conductor_on(engine, heard, machine("one"))
    conductor.submit(tuning_job(80))
    conductor.run()
    changes = [event for event in heard.events if isinstance(event, ResourceAdded | ResourceLost)]
    names = [e.resource.name if isinstance(e, ResourceAdded) else f"-{e.name}" for e in changes]
    assert names == ["one/host", "one/cpu0", "two/host", "two/cpu0", "-two/cpu0", "two/cpu0"]
    assert heard.left == [("two/cpu0", "unplugged")]
    assert "resident:two/cpu0" in engine.released


def test_a_machine_that_joins_anew_without_having_left_has_lost_what_ran_there() -> None:
    engine, heard, program = ScriptedEngine(FakeStages()), Heard(), tuning_job(60)
    here = machine("one")
    engine.happens(7.5, ResourceJoined(offer=here.offers[1]))
    conductor = conductor_on(engine, heard, here)
    conductor.submit(program)
    conductor.run()
    assert heard.left == [("one/cpu0", "it joined anew")]
    assert program.tuning.spent == 60 and heard.ended == [("net", False)]


def test_resources_that_an_engine_reports_at_once_are_there_before_the_first_job() -> None:
    engine, heard, program = ScriptedEngine(FakeStages()), Heard(), tuning_job(12)
    for offer in machine("one").offers:
        engine.happens(0.0, ResourceJoined(offer=offer))
    conductor = conductor_on(engine, heard)
    conductor.submit(program)
    conductor.run()
    assert heard.ended == [("net", False)] and program.tuning.spent == 12


def test_the_workers_of_a_job_that_ended_are_released() -> None:
    engine, heard = ScriptedEngine(FakeStages()), Heard()
    conductor = conductor_on(engine, heard, machine("one"))
    conductor.submit(tuning_job(12))
    conductor.run()
    assert engine.released == ["net:tuner0", "net:tuner1"]


class FragileDevices(ScriptedEngine):
    """A device leaves together with every call that is lost there, and is back after five seconds."""

    def __init__(self, answer: Callable[[Call], CallResult | Lost], *machines: Fleet) -> None:
        super().__init__(answer)
        self._offers = {offer.resource.name: offer for each in machines for offer in each.offers}
        self._places: dict[str, str] = {}

    def start(self, call_id: str, call: Call) -> None:
        assert call.place is not None
        self._places[call_id] = call.place.resource
        super().start(call_id, call)

    def poll(self, timeout_s: float | None) -> Sequence[EngineReport]:
        reports = super().poll(timeout_s)
        lost = [r for r in reports if isinstance(r, CallEnded) and isinstance(r.result, Lost)]
        for name in (self._places[ended.id] for ended in lost):
            self.happens(self.now_s() + 5, ResourceJoined(offer=self._offers[name]))
            reports = [ResourceLeft(name=name, reason="it was unplugged"), *reports]
        return reports


def test_a_candidate_that_takes_three_devices_along_is_to_blame_and_runs_once_at_a_time() -> None:
    stages, taken_along = FakeStages(), []

    def answer(call: Call) -> CallResult | Lost:
        if _profiles(call, "a", b"1"):
            taken_along.append(call.place and call.place.resource)
            return Lost(reason="it was unplugged")
        return stages(call)

    program, heard, machines = tuning_job(40), Heard(), (machine("one"), machine("two"))
    conductor = conductor_on(FragileDevices(answer, *machines), heard, *machines)
    conductor.submit(program)
    conductor.run()
    assert len(taken_along) == 3 and {name for name, _ in heard.left} == set(taken_along)
    assert heard.ended == [("net", False)] and program.tuning.spent == 40
    assert sum(progress.failures.total() for progress in program.tuning.tasks) == 1


def _profiles(call: Call, task: str, payload: bytes) -> bool:
    if not call.function.endswith(":profile"):
        return False
    return bool(call.arguments[1].name == task and call.arguments[2].payload == payload)
