"""Builds that take far too long are given up; at the end nobody waits for a straggler."""

from collections.abc import Sequence

from support.jobs.small import small_spec, small_task
from support.jobs.task_job import TaskJob
from tuneloom.app.conducting.conductor import Conductor
from tuneloom.app.conducting.listening import Listener
from tuneloom.app.conducting.programs import Program, Step
from tuneloom.app.tuning.stage_calls import BuildLimits
from tuneloom.engine.calls import Call, Returned
from tuneloom.engine.machine import HOST, Fleet, Offer
from tuneloom.model import Artifact, Device, FailureKind, Host
from tuneloom.scheduling import Core, policy_named
from tuneloom.scheduling.stages import ANY_CORE, JobTicket, StageRequest
from tuneloom.testing.engines.scripted import ScriptedEngine
from tuneloom.testing.jobs.fake_stages import FakeStages

MACHINE = Fleet(
    offers=(Offer(resource=Host(name=HOST, slots=2)), Offer(resource=Device(name="cpu0", key="cpu")))
)


def limits_of(seconds: float, count: int = 20, kernel_class: str = "conv2d") -> BuildLimits:
    limits = BuildLimits(30.0)
    for _ in range(count):
        limits.learn(kernel_class, seconds)
    return limits


def test_before_enough_is_seen_the_users_limit_holds() -> None:
    assert limits_of(0.5, count=7).limit_s("conv2d") == 30.0


def test_a_limit_is_far_above_what_builds_of_the_class_take_and_never_above_the_users() -> None:
    assert limits_of(2.0).limit_s("conv2d") == 10.0
    assert limits_of(25.0).limit_s("conv2d") == 30.0


def test_a_limit_is_never_below_a_floor_that_a_busy_machine_needs() -> None:
    assert limits_of(0.001).limit_s("conv2d") == 6.0
    assert limits_of(0.001).late_s("conv2d") == 4.0


def test_a_class_that_has_shown_little_is_judged_by_all_builds_of_the_job() -> None:
    limits = limits_of(2.0)
    limits.learn("softmax", 0.1)
    assert limits.limit_s("softmax") == limits.limit_s("dense") == 10.0


def test_a_few_stragglers_do_not_move_the_limit() -> None:
    limits = limits_of(2.0, count=40)
    for _ in range(3):
        limits.learn("conv2d", 29.0)
    assert limits.limit_s("conv2d") == 10.0


def conduct(program: Program, engine: ScriptedEngine) -> None:
    conductor = Conductor(Core(policy_named("load-aware")), engine, Listener())
    conductor.add_machine(MACHINE)
    conductor.submit(program)
    conductor.run()


def tuned(trials: int, straggler: int) -> tuple[TaskJob, ScriptedEngine]:
    """A job of one task, of which one candidate builds for ever; others take a second."""

    def takes_s(call: Call) -> float:
        hangs = call.function.endswith(":build") and call.arguments[2].key == f"p{straggler}"
        return 1e6 if hangs else 1.0

    stages = FakeStages(build=lambda _task, n: Artifact(payload=str(n).encode(), build_s=1.0))
    job = TaskJob("job", small_spec(trials), [small_task("a")], lambda *_: None, lanes=2, workers=1)
    engine = ScriptedEngine(stages, takes_s)
    conduct(job, engine)
    return job, engine


def test_a_straggler_is_cut_off_by_what_other_builds_took_and_counts_as_a_timeout() -> None:
    job, engine = tuned(trials=40, straggler=1)
    (task,) = job.tuning.tasks
    assert task.failures == {FailureKind.BUILD_TIMEOUT: 1} and len(task.trials) == 40
    assert engine.now_s() < 1e6 and len(engine.stopped) == 1


def test_a_build_started_late_carries_the_learned_limit() -> None:
    _, engine = tuned(trials=40, straggler=-1)
    limits = [call.timeout_s for call in engine.started if call.function.endswith(":build")]
    assert limits[0] == 30.0 and limits[-1] == 6.0


def test_at_the_end_nobody_waits_for_a_straggler_until_its_limit() -> None:
    job, engine = tuned(trials=40, straggler=39)
    (task,) = job.tuning.tasks
    assert task.failures == {FailureKind.BUILD_TIMEOUT: 1} and len(task.trials) == 40
    (late,) = [t for t in task.trials if t.seconds is None]
    assert late.candidate.key == "p39"
    assert len(engine.stopped) == 1, "ended before the limit that it carried"


class Waiting:
    """A job of two steps, of which the first is given up when told so."""

    def __init__(self, patience_s: float) -> None:
        self.ticket = JobTicket(id="job")
        self.results: list[object] = []
        self._patience_s = patience_s

    @property
    def done(self) -> bool:
        return bool(self.results)

    def begin(self, at_s: float) -> Sequence[Step]:
        request = StageRequest(id="s", job="job", lane="l", step=0, kind="build", needs=ANY_CORE)
        return [
            Step(
                request=request,
                call=lambda: Call(function="m:f"),
                ended=lambda result, _at_s: self.results.append(result) or [],  # type: ignore[func-returns-value]
                overdue=lambda ran_s, _at_s: ran_s > self._patience_s,
            )
        ]

    def stopping(self) -> None:
        """Nothing to stop."""

    def worker_lost(self, worker: str) -> None:
        """It has none."""


def test_the_conductor_ends_a_call_that_its_step_gives_up() -> None:
    engine = ScriptedEngine(lambda _call: Returned(value=1), lambda _call: 100.0)
    program = Waiting(3.0)
    conduct(program, engine)
    assert len(engine.stopped) == 1 and 3.0 < engine.now_s() < 4.0
    assert str(program.results[0]).startswith("it did not end within 3")


def test_a_call_that_nobody_gives_up_comes_to_its_end() -> None:
    engine = ScriptedEngine(lambda _call: Returned(value=1), lambda _call: 100.0)
    program = Waiting(200.0)
    conduct(program, engine)
    assert engine.stopped == [] and program.results == [Returned(value=1)]
