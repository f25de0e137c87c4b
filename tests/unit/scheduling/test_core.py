"""The core's books: what each event does, whatever the policy."""

import pytest

from tuneloom.errors import SchedulingError
from tuneloom.model import Device, Host
from tuneloom.scheduling import POLICIES, Core, JobState, policy_named, view
from tuneloom.scheduling.messages import (
    Command,
    FinishJob,
    JobCancelled,
    JobPaused,
    JobResumed,
    JobSubmitted,
    RefuseJob,
    ResourceAdded,
    ResourceLost,
    StageFinished,
    StageLost,
    StartStage,
    StopStage,
)
from tuneloom.scheduling.stages import Demand, DeviceDemand, Grant, JobTicket, SlotDemand, StageRequest

GPU = DeviceDemand(key="gpu")


def stage(
    job: str, name: str, needs: Demand | None = None, *, lane: str = "l", step: int = 0, home: str = ""
) -> StageRequest:
    return StageRequest(
        id=name, job=job, lane=lane, step=step, kind=name, needs=needs or SlotDemand(), home=home
    )


def submitted(job: str, *ready: StageRequest, at_s: float = 0.0, **ticket: object) -> JobSubmitted:
    return JobSubmitted(at_s=at_s, ticket=JobTicket(id=job, **ticket), ready=ready)  # type: ignore[arg-type]


def started(commands: list[Command]) -> list[tuple[str, str, str]]:
    return [
        (command.request.job, command.request.id, command.grant.resource)
        for command in commands
        if isinstance(command, StartStage)
    ]


def state_of(core: Core, job: str) -> JobState:
    return core.jobs[job].state


@pytest.fixture(params=list(POLICIES))
def core(request: pytest.FixtureRequest) -> Core:
    core = Core(policy_named(request.param))
    core.handle(ResourceAdded(at_s=0.0, resource=Host(name="host", slots=1)))
    core.handle(ResourceAdded(at_s=0.0, resource=Device(name="gpu-0", key="gpu")))
    return core


def test_submitted_job_starts_its_first_stage(core: Core) -> None:
    assert started(core.handle(submitted("a", stage("a", "select")))) == [("a", "select", "host")]
    assert core.jobs["a"].state is JobState.RUNNING
    core.check()


def test_finished_stage_starts_the_next_on_its_resource(core: Core) -> None:
    core.handle(submitted("a", stage("a", "build")))
    ready = (stage("a", "profile", GPU, step=1),)
    commands = core.handle(StageFinished(at_s=1.0, job="a", stage="build", ready=ready))
    assert started(commands) == [("a", "profile", "gpu-0")]
    core.check()


def test_done_job_finishes_and_holds_nothing(core: Core) -> None:
    core.handle(submitted("a", stage("a", "select")))
    assert core.handle(StageFinished(at_s=1.0, job="a", stage="select", done=True)) == [FinishJob(job="a")]
    assert not core.floor.seats["host"].holders
    core.check()


def test_job_without_stages_finishes_at_once(core: Core) -> None:
    assert core.handle(submitted("a")) == [FinishJob(job="a")]


def test_unknown_device_key_is_refused_with_the_known_ones(core: Core) -> None:
    commands = core.handle(submitted("a", stage("a", "s"), device_keys=frozenset({"tpu"})))
    assert commands == [RefuseJob(job="a", reason="no device with key 'tpu'; known: 'gpu'")]
    core.check()


def test_job_that_agreed_to_wait_starts_when_its_device_comes(core: Core) -> None:
    job = submitted("a", stage("a", "p", DeviceDemand(key="tpu")), waits_for_devices=True)
    assert core.handle(job) == []
    assert view(core).jobs[0].stranded == 1
    commands = core.handle(ResourceAdded(at_s=5.0, resource=Device(name="tpu-0", key="tpu")))
    assert started(commands) == [("a", "p", "tpu-0")]
    core.check()


def test_stage_wider_than_every_host_is_refused(core: Core) -> None:
    commands = core.handle(submitted("a", stage("a", "s", SlotDemand(slots=4))))
    assert isinstance(commands[0], RefuseJob)
    assert "needs 4 slots of any host; hosts and their slots: 'host' (1)" in commands[0].reason


def test_lost_resource_stops_its_stage_and_queues_it_again(core: Core) -> None:
    core.handle(submitted("a", stage("a", "p", GPU)))
    commands = core.handle(ResourceLost(at_s=1.0, name="gpu-0"))
    assert commands == [StopStage(job="a", stage="p")]
    assert core.jobs["a"].state is JobState.WAITING
    core.check()
    back = core.handle(ResourceAdded(at_s=2.0, resource=Device(name="gpu-1", key="gpu")))
    assert started(back) == [("a", "p", "gpu-1")]
    core.check()


def test_late_result_of_a_stopped_stage_is_ignored(core: Core) -> None:
    core.handle(submitted("a", stage("a", "p", GPU)))
    core.handle(ResourceLost(at_s=1.0, name="gpu-0"))
    assert core.handle(StageFinished(at_s=2.0, job="a", stage="p", done=True)) == []
    core.handle(JobCancelled(at_s=3.0, job="a"))
    assert core.handle(StageLost(at_s=4.0, job="a", stage="p")) == []


def test_stages_of_one_home_run_on_one_host(core: Core) -> None:
    core.handle(submitted("a", stage("a", "s", home="search"), stage("a", "t", home="search")))
    later = core.handle(ResourceAdded(at_s=1.0, resource=Host(name="other", slots=4, machine="other")))
    assert started(later) == []
    core.check()
    ended = core.handle(StageFinished(at_s=2.0, job="a", stage="s"))
    assert started(ended) == [("a", "t", "host")]
    core.check()


def test_with_one_host_a_home_changes_nothing(core: Core) -> None:
    core.handle(submitted("a", stage("a", "s", home="search"), stage("a", "t", home="search")))
    assert core.jobs["a"].stages["t"].request.needs == SlotDemand()
    core.handle(ResourceAdded(at_s=1.0, resource=Host(name="other", slots=1, machine="other")))
    assert core.jobs["a"].stages["t"].request.needs == SlotDemand(host="host")
    core.check()


def test_a_home_whose_host_is_lost_may_be_anywhere_again(core: Core) -> None:
    core.handle(submitted("a", stage("a", "s", home="search"), stage("a", "t", home="search")))
    core.handle(ResourceLost(at_s=1.0, name="host"))
    core.check()
    again = core.handle(ResourceAdded(at_s=2.0, resource=Host(name="other", slots=1, machine="other")))
    ((_, first, where),) = started(again)
    assert where == "other"
    core.check()
    ended = core.handle(StageFinished(at_s=3.0, job="a", stage=first))
    assert started(ended) == [("a", "t" if first == "s" else "s", "other")]


def test_a_paused_job_finds_its_home_again(core: Core) -> None:
    core.handle(submitted("a", stage("a", "s", home="search"), stage("a", "t", home="search")))
    core.handle(JobPaused(at_s=1.0, job="a"))
    core.handle(StageFinished(at_s=2.0, job="a", stage="s"))
    core.handle(ResourceAdded(at_s=3.0, resource=Host(name="other", slots=4, machine="other")))
    assert started(core.handle(JobResumed(at_s=4.0, job="a"))) == [("a", "t", "host")]
    core.check()


def test_a_stage_with_a_home_names_no_host_itself(core: Core) -> None:
    with pytest.raises(SchedulingError, match="names a host and a home"):
        core.handle(submitted("a", stage("a", "s", SlotDemand(host="host"), home="search")))


def test_a_device_lends_to_a_host_of_its_own_machine_only(core: Core) -> None:
    stranger = Device(name="board", key="board", lends_to="host", machine="elsewhere")
    with pytest.raises(SchedulingError, match="can't lend to 'host', which is on machine 'local'"):
        core.handle(ResourceAdded(at_s=1.0, resource=stranger))
    core.check()


def test_lost_stage_starts_again(core: Core) -> None:
    core.handle(submitted("a", stage("a", "select")))
    assert started(core.handle(StageLost(at_s=1.0, job="a", stage="select"))) == [("a", "select", "host")]
    core.check()


def test_cancelled_job_is_stopped_and_gives_way(core: Core) -> None:
    core.handle(submitted("a", stage("a", "s"), stage("a", "t", lane="m")))
    core.handle(submitted("b", stage("b", "s")))
    core.handle(JobCancelled(at_s=1.0, job="a"))
    core.check()
    assert "a" not in core.jobs
    assert core.jobs["b"].running == 1


def test_cancelling_an_ended_job_changes_nothing(core: Core) -> None:
    core.handle(submitted("a"))
    for event in (
        JobCancelled(at_s=1.0, job="a"),
        JobPaused(at_s=1.0, job="a"),
        JobResumed(at_s=1.0, job="a"),
    ):
        assert core.handle(event) == []


def test_paused_job_ends_its_stage_and_starts_none_until_resumed(core: Core) -> None:
    core.handle(submitted("a", stage("a", "s")))
    assert core.handle(JobPaused(at_s=1.0, job="a")) == []
    assert state_of(core, "a") is JobState.PAUSING
    assert core.handle(StageFinished(at_s=2.0, job="a", stage="s", ready=(stage("a", "t", step=1),))) == []
    assert state_of(core, "a") is JobState.PAUSED
    core.check()
    assert started(core.handle(JobResumed(at_s=3.0, job="a"))) == [("a", "t", "host")]
    core.check()


def test_done_drops_what_only_waits_and_lets_the_rest_end(core: Core) -> None:
    core.handle(ResourceAdded(at_s=0.0, resource=Device(name="gpu-1", key="gpu")))
    parts = [stage("a", f"p{i}", GPU) for i in range(3)]
    core.handle(submitted("a", *parts))
    assert core.handle(StageFinished(at_s=1.0, job="a", stage="p0", done=True)) == []
    assert core.jobs["a"].state is JobState.FINISHING
    core.check()
    assert core.handle(StageFinished(at_s=2.0, job="a", stage="p1")) == [FinishJob(job="a")]


def test_stage_lost_while_finishing_is_not_repeated(core: Core) -> None:
    core.handle(ResourceAdded(at_s=0.0, resource=Device(name="gpu-1", key="gpu")))
    core.handle(submitted("a", stage("a", "p0", GPU), stage("a", "p1", GPU)))
    core.handle(StageFinished(at_s=1.0, job="a", stage="p0", done=True))
    assert core.handle(StageLost(at_s=2.0, job="a", stage="p1")) == [FinishJob(job="a")]


def test_event_from_the_past_counts_as_now(core: Core) -> None:
    core.handle(submitted("a", stage("a", "s"), at_s=5.0))
    core.handle(StageFinished(at_s=4.0, job="a", stage="s", done=True))
    assert core.now_s == 5.0


@pytest.mark.parametrize(
    ("event", "words"),
    [
        (StageFinished(at_s=1.0, job="x", stage="s"), "no job 'x'"),
        (StageFinished(at_s=1.0, job="a", stage="x"), "no running stage 'x'"),
        (StageFinished(at_s=1.0, job="a", stage="s"), "no stage left"),
        (StageFinished(at_s=1.0, job="a", stage="s", ready=(stage("b", "t"),)), "came with job 'a'"),
        (StageFinished(at_s=1.0, job="a", stage="s", ready=(stage("a", "s"),)), "its own id"),
        (StageFinished(at_s=1.0, job="a", stage="s", ready=(stage("a", "t"),), done=True), "said it is done"),
        (JobCancelled(at_s=1.0, job="x"), "no job 'x'"),
        (ResourceLost(at_s=1.0, name="x"), "no resource named 'x'; known: 'host', 'gpu-0'"),
        (ResourceAdded(at_s=1.0, resource=Host(name="host", slots=2)), "named 'host' already"),
        (submitted("a", stage("a", "s")), "a job 'a' already"),
    ],
)
def test_senseless_event_raises_and_changes_nothing(core: Core, event: StageFinished, words: str) -> None:
    core.handle(submitted("a", stage("a", "s")))
    before = view(core)
    with pytest.raises(SchedulingError, match=words):
        core.handle(event)
    assert view(core) == before
    core.check()


def test_view_shows_who_runs_where_and_who_waits(core: Core) -> None:
    core.handle(submitted("a", stage("a", "s")))
    core.handle(submitted("b", stage("b", "p", GPU), device_keys=frozenset({"gpu"})))
    picture = view(core, 4.0)
    host = next(resource for resource in picture.resources if resource.name == "host")
    assert (host.taken, host.busy_s) == (1, 4.0)
    assert [(run.job, run.kind, run.since_s) for run in host.running] == [("a", "s", 0.0)]
    assert [(job.id, job.waiting + len(job.running)) for job in picture.jobs] == [("a", 1), ("b", 1)]


def test_broken_books_are_noticed() -> None:
    core = Core(policy_named("load-aware"))
    core.handle(ResourceAdded(at_s=0.0, resource=Device(name="gpu-0", key="gpu")))
    core.handle(submitted("a", stage("a", "p0", GPU)))
    core.handle(submitted("b", stage("b", "p0", GPU)))
    thief = core.jobs["b"].stages["p0"]
    thief.grant = Grant(resource="gpu-0")
    core.floor.seats["gpu-0"].holders[thief] = 1
    core.floor.seats["gpu-0"].taken += 1
    with pytest.raises(SchedulingError, match="broken invariant"):
        core.check()
