"""What the default policy prefers, promises and learns."""

import pytest

from tuneloom.errors import InputError
from tuneloom.model import Device, Host
from tuneloom.scheduling import Core, policy_named
from tuneloom.scheduling.messages import (
    Command,
    JobSubmitted,
    ResourceAdded,
    ResourceLost,
    StageFinished,
    StartStage,
)
from tuneloom.scheduling.policies.load_aware.policy import LoadAware
from tuneloom.scheduling.policies.load_aware.predictions import Estimate, OwnDurations, Predictions, Speeds
from tuneloom.scheduling.stages import Demand, DeviceDemand, JobTicket, SlotDemand, StageRequest
from tuneloom.simulation import RoundsJob, Workload, lower_bound, simulate

GPU = DeviceDemand(key="gpu")
SLOT = SlotDemand()
PAIR: list[Host | Device] = [Host(name="h", slots=1), Device(name="d", key="device")]


def stage(
    job: str,
    name: str,
    needs: Demand = SLOT,
    then: Demand | None = None,
    *,
    expected_s: float | None = None,
    lane: str = "l",
) -> StageRequest:
    return StageRequest(
        id=name, job=job, lane=lane, step=0, kind=name, needs=needs, then=then, expected_s=expected_s
    )


def submit(core: Core, ready: StageRequest, at_s: float = 0.0, **ticket: object) -> list[Command]:
    job = JobTicket(id=ready.job, **ticket)  # type: ignore[arg-type]
    commands = core.handle(JobSubmitted(at_s=at_s, ticket=job, ready=(ready,)))
    core.check()
    return commands


def finish(core: Core, job: str, name: str, at_s: float, *ready: StageRequest) -> list[tuple[str, str]]:
    commands = core.handle(StageFinished(at_s=at_s, job=job, stage=name, ready=ready, done=not ready))
    core.check()
    return started(commands)


def started(commands: list[Command]) -> list[tuple[str, str]]:
    return [(c.request.job, c.grant.resource) for c in commands if isinstance(c, StartStage)]


def floor(*resources: Host | Device) -> Core:
    core = Core(LoadAware())
    for resource in resources:
        core.handle(ResourceAdded(at_s=0.0, resource=resource))
    return core


def test_host_stage_that_feeds_an_idle_device_goes_first() -> None:
    core = floor(Host(name="h", slots=1), Device(name="g", key="gpu"))
    submit(core, stage("busy", "select"))
    submit(core, stage("early", "update", expected_s=1.0))
    submit(core, stage("late", "build", then=GPU, expected_s=1.0))
    assert finish(core, "busy", "select", 1.0) == [("late", "h")]


def test_host_stage_does_not_jump_the_line_while_the_device_has_work() -> None:
    core = floor(Host(name="h", slots=1), Device(name="g", key="gpu"))
    for number in range(3):
        submit(core, stage(f"p{number}", "profile", GPU, expected_s=50.0))
    submit(core, stage("busy", "select"))
    submit(core, stage("early", "update", expected_s=1.0))
    submit(core, stage("late", "build", then=GPU, expected_s=1.0))
    assert finish(core, "busy", "select", 1.0) == [("early", "h")]


def test_higher_priority_goes_first_even_if_it_feeds_nothing() -> None:
    core = floor(Host(name="h", slots=1), Device(name="g", key="gpu"))
    submit(core, stage("busy", "select"))
    submit(core, stage("feeder", "build", then=GPU, expected_s=1.0))
    submit(core, stage("urgent", "update", expected_s=1.0), priority=1)
    assert finish(core, "busy", "select", 1.0) == [("urgent", "h")]


def test_job_near_its_deadline_goes_before_one_that_has_time() -> None:
    core = floor(Host(name="h", slots=1))
    submit(core, stage("busy", "s"))
    submit(core, stage("relaxed", "s"), deadline_s=10_000.0)
    submit(core, stage("pressed", "s"), at_s=1.0, deadline_s=1.5)
    assert finish(core, "busy", "s", 2.0) == [("pressed", "h")]


def test_wide_stage_gets_its_slots_although_small_ones_keep_coming() -> None:
    core = floor(Host(name="h", slots=2))
    submit(core, stage("s0", "small", expected_s=10.0))
    submit(core, stage("s1", "small", expected_s=10.0))
    submit(core, stage("wide", "wide", SlotDemand(slots=2), expected_s=10.0))
    at_s, lives, seen = 0.0, {"s0": "small", "s1": "small"}, []
    for turn in range(100):
        at_s += 5.0
        job = f"s{turn % 2}"
        if job not in lives:
            continue
        fresh = stage(job, f"small-{turn}", expected_s=10.0)
        seen += finish(core, job, lives.pop(job), at_s, fresh)
        if ("wide", "h") in seen:
            return
        if (job, "h") in seen[-1:]:
            lives[job] = fresh.id
    pytest.fail("the wide stage never started")


def test_low_priority_job_still_makes_progress() -> None:
    jobs = tuple(RoundsJob(name=f"high-{n}", rounds=200, priority=1) for n in range(3))
    low = RoundsJob(name="low", rounds=5, priority=0)
    result = simulate(Workload(jobs=(*jobs, low)), PAIR, "load-aware")
    assert result.completed_s["low"] < min(result.completed_s[job.name] for job in jobs)


def test_equal_jobs_share_by_weight() -> None:
    heavy = RoundsJob(name="heavy", rounds=60, stages={"select": 10.0}, weight=3.0)
    light = RoundsJob(name="light", rounds=60, stages={"select": 10.0})
    result = simulate(Workload(jobs=(light, heavy)), [Host(name="h", slots=1)], "load-aware")
    served = [span.job for span in result.spans if span.end_s <= 400.0]
    assert served.count("heavy") == pytest.approx(3 * served.count("light"), abs=3)


@pytest.mark.parametrize("factor", [0.1, 1.0, 10.0])
def test_wrong_priors_cost_little(factor: float) -> None:
    jobs = tuple(RoundsJob(name=f"j{n}", rounds=10, prior_factor=factor) for n in range(4))
    result = simulate(Workload(jobs=jobs), PAIR, "load-aware", check=True)
    assert result.makespan_s <= 1.05 * lower_bound(jobs, PAIR).seconds


def test_idle_device_lends_itself_to_its_host() -> None:
    core = floor(Host(name="h", slots=1), Device(name="cores", key="cpu", lends_to="h"))
    submit(core, stage("a", "build", SlotDemand(lendable=True)))
    assert started(submit(core, stage("b", "build", SlotDemand(lendable=True)))) == [("b", "cores")]


def test_device_is_not_lent_to_stages_that_did_not_ask() -> None:
    core = floor(Host(name="h", slots=1), Device(name="cores", key="cpu", lends_to="h"))
    submit(core, stage("a", "select"))
    assert started(submit(core, stage("b", "select"))) == []


def test_device_is_not_lent_for_longer_than_it_would_wait() -> None:
    core = floor(Host(name="h", slots=1), Device(name="cores", key="cpu", lends_to="h"))
    feeds = DeviceDemand(key="cpu")
    submit(core, stage("a", "build", then=feeds, expected_s=1.0))
    assert started(submit(core, stage("b", "long", SlotDemand(lendable=True), expected_s=60.0))) == []
    assert started(submit(core, stage("c", "short", SlotDemand(lendable=True), expected_s=0.5))) == []


def test_short_stage_borrows_while_the_device_waits_for_a_long_build() -> None:
    core = floor(Host(name="h", slots=1), Device(name="cores", key="cpu", lends_to="h"))
    submit(core, stage("a", "build", then=DeviceDemand(key="cpu"), expected_s=10.0))
    assert started(submit(core, stage("b", "short", SlotDemand(lendable=True), expected_s=2.0))) == [
        ("b", "cores")
    ]


def test_a_device_that_is_wanted_less_than_its_host_builds_too() -> None:
    stages = {"select": 0.3, "build": 2.9, "profile": 1.0, "update": 0.01}
    job = RoundsJob(
        name="j",
        rounds=60,
        stages=stages,
        parts=16,
        lanes_in_flight=3,
        lendable_builds=True,
        device_key="cpu",
    )
    cores: list[Host | Device] = [Host(name="h", slots=1), Device(name="d", key="cpu", lends_to="h")]
    result = simulate(Workload(jobs=(job,)), cores, "load-aware", check=True)
    assert result.makespan_s <= 1.05 * job.rounds * sum(stages.values()) / len(cores)


def test_estimate_follows_a_lasting_change_and_ignores_one_outlier() -> None:
    estimate = Estimate()
    for sample in [1.0] * 8 + [1000.0]:
        estimate.add(sample)
    assert estimate.value < 1.5
    for _ in range(40):
        estimate.add(10.0)
    assert estimate.value == pytest.approx(10.0, rel=0.1)


def test_own_experience_counts_more_than_a_prior_and_a_prior_more_than_others() -> None:
    predictions, a, b = Predictions(), OwnDurations(), OwnDurations()
    assert predictions.of(stage("a", "s"), a) is None
    predictions.learn(stage("a", "s"), a, 4.0)
    assert predictions.of(stage("a", "s", expected_s=100.0), a) == 4.0
    assert predictions.of(stage("b", "s", expected_s=100.0), b) == 100.0
    assert predictions.of(stage("b", "s"), b) == 4.0


def test_priors_are_corrected_by_how_wrong_they_were() -> None:
    predictions, a, b = Predictions(), OwnDurations(), OwnDurations()
    predictions.learn(stage("a", "s", expected_s=1.0), a, 10.0)
    assert predictions.of(stage("b", "s", expected_s=2.0), b) == pytest.approx(20.0)


def test_a_device_that_joins_later_is_lent_to_stages_that_wait_already() -> None:
    core = floor(Host(name="h", slots=1))
    lendable = SlotDemand(lendable=True)
    for name in ("busy", "first", "second"):
        submit(core, stage(name, "build", lendable))
    came = core.handle(ResourceAdded(at_s=1.0, resource=Device(name="g", key="gpu", lends_to="h")))
    assert started(came) == [("first", "g")]
    assert finish(core, "first", "build", 2.0) == [("second", "g")]


def test_nothing_of_a_job_that_ended_refers_to_itself() -> None:
    core = floor(Host(name="h", slots=1))
    submit(core, stage("a", "build"))
    job = core.jobs["a"]
    (waited,) = job.stages.values()
    finish(core, "a", "build", 1.0)
    assert job.notes is None and waited.notes is None


def test_unknown_policy_names_the_known_ones() -> None:
    with pytest.raises(InputError, match="no policy named 'fifo'; known: 'load-aware', 'interleaved'"):
        policy_named("fifo")
    assert policy_named("load_aware").name == "load-aware"


def homed(job: str, name: str, home: str) -> StageRequest:
    return StageRequest(id=name, job=job, lane=name, step=0, kind="select", needs=SLOT, home=home)


def test_homes_are_spread_over_hosts_by_their_slots() -> None:
    core = floor(Host(name="small", slots=4, machine="a"), Host(name="large", slots=8, machine="b"))
    ready = tuple(homed("j", f"s{n}", f"search {n}") for n in range(6))
    commands = core.handle(JobSubmitted(at_s=0.0, ticket=JobTicket(id="j"), ready=ready))
    hosts = [host for _, host in started(commands)]
    assert (hosts.count("small"), hosts.count("large")) == (2, 4)


def test_a_home_goes_to_an_empty_host_even_if_another_has_just_become_free() -> None:
    core = floor(Host(name="a", slots=4, machine="a"), Host(name="b", slots=4, machine="b"))
    submit(core, homed("j", "first", "one"))
    assert finish(core, "j", "first", 1.0, homed("j", "second", "two")) == [("j", "b")]
    assert finish(core, "j", "second", 2.0, homed("j", "third", "one")) == [("j", "a")]


def test_homes_of_a_host_that_is_gone_and_of_jobs_that_ended_do_not_count() -> None:
    core = floor(Host(name="a", slots=4, machine="a"), Host(name="b", slots=4, machine="b"))
    for job in ("x", "y"):
        submit(core, homed(job, "s", "home"))
        finish(core, job, "s", 1.0)
    core.handle(ResourceLost(at_s=2.0, name="b"))
    core.handle(ResourceAdded(at_s=3.0, resource=Host(name="b", slots=4, machine="b")))
    commands = submit(core, homed("z", "s", "home"), at_s=4.0)
    assert started(commands) == [("z", "a")]


def test_speeds_tell_slow_hosts_from_fast_ones_and_leave_one_host_alone() -> None:
    speeds = Speeds()
    speeds.learn("only", 1.0, 9.0)
    assert speeds.factor("only") == 1.0
    for _ in range(80):
        speeds.learn("only", 1.0, 1.0)
        speeds.learn("slow", 1.0, 3.0)
    assert speeds.factor("slow") / speeds.factor("only") == pytest.approx(3.0, rel=0.05)
    speeds.forget("slow")
    assert speeds.factor("only") == speeds.factor("slow") == 1.0


def test_a_slow_host_gets_fewer_homes() -> None:
    core = floor(Host(name="slow", slots=4, machine="a"), Host(name="fast", slots=4, machine="b"))
    policy = core.policy
    assert isinstance(policy, LoadAware)
    for _ in range(8):
        policy._speeds.learn("slow", 1.0, 3.0)
        policy._speeds.learn("fast", 1.0, 1.0)
    ready = tuple(homed("j", f"s{n}", f"search {n}") for n in range(4))
    commands = core.handle(JobSubmitted(at_s=0.0, ticket=JobTicket(id="j"), ready=ready))
    assert [host for _, host in started(commands)].count("fast") == 3
