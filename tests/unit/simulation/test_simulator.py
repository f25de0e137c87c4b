"""The virtual clock: what a simulation tells."""

import pytest

from tuneloom.errors import InputError
from tuneloom.model import Device, Host
from tuneloom.scheduling import POLICIES
from tuneloom.scheduling.messages import JobCancelled, ResourceAdded, ResourceLost
from tuneloom.scheduling.stages import DeviceDemand, SlotDemand
from tuneloom.simulation import ChainJob, RoundsJob, TimedStep, Workload, poisson_arrivals, simulate

FLOOR: list[Host | Device] = [Host(name="h", slots=1), Device(name="d", key="device")]
STAGES = {"select": 4.0, "build": 2.0, "profile": 5.0, "update": 3.0}


def rounds(name: str = "a", count: int = 2, **fields: object) -> RoundsJob:
    return RoundsJob(name=name, rounds=count, stages=STAGES, **fields)  # type: ignore[arg-type]


@pytest.mark.parametrize("policy", POLICIES)
def test_one_job_alone_takes_the_sum_of_its_stages(policy: str) -> None:
    result = simulate(Workload(jobs=(rounds(),)), FLOOR, policy, check=True)
    assert result.makespan_s == pytest.approx(28.0)
    host, device = result.resources
    assert host.utilisation == pytest.approx(18 / 28)
    assert device.utilisation == pytest.approx(10 / 28)
    assert host.waited_s == device.waited_s == 0


def test_streamed_candidates_overlap_build_and_profile() -> None:
    whole = simulate(Workload(jobs=(rounds(),)), FLOOR, "load-aware")
    streamed = simulate(Workload(jobs=(rounds(parts=4),)), FLOOR, "load-aware", check=True)
    assert streamed.makespan_s == pytest.approx(whole.makespan_s - 2 * 2.0 * 3 / 4)


def test_several_lanes_of_one_job_fill_the_machine() -> None:
    one = simulate(Workload(jobs=(rounds(count=8),)), FLOOR, "load-aware")
    two = simulate(Workload(jobs=(rounds(count=8, lanes_in_flight=2),)), FLOOR, "load-aware", check=True)
    assert two.makespan_s < 0.75 * one.makespan_s


def test_waiting_is_told_per_resource() -> None:
    step = TimedStep(kind="hold", needs=SlotDemand(), parts=(10.0,))
    jobs = (ChainJob(name="a", steps=(step,)), ChainJob(name="b", steps=(step,)))
    result = simulate(Workload(jobs=jobs), FLOOR, "interleaved")
    assert result.resources[0].waited_s == 10.0
    assert result.resources[0].mean_wait_s == 5.0
    assert result.mean_stay_s == 15.0


@pytest.mark.parametrize("policy", POLICIES)
def test_job_that_tunes_nothing_is_scheduled_like_any_other(policy: str) -> None:
    steps = (
        TimedStep(kind="brew", needs=SlotDemand(), parts=(3.0,)),
        TimedStep(kind="pour", needs=DeviceDemand(key="device"), parts=(1.0, 1.0)),
    )
    result = simulate(Workload(jobs=(ChainJob(name="tea", steps=steps),)), FLOOR, policy, check=True)
    assert result.completed_s == {"tea": 5.0}


def test_arrivals_are_kept() -> None:
    result = simulate(Workload(jobs=(rounds(arrives_s=100.0),)), FLOOR, "load-aware")
    assert result.completed_s == {"a": 128.0}
    assert result.mean_stay_s == 28.0


def test_poisson_arrivals_repeat_with_the_seed_and_keep_their_rate() -> None:
    times = poisson_arrivals(2000, 60.0, seed=3)
    assert times == poisson_arrivals(2000, 60.0, seed=3) != poisson_arrivals(2000, 60.0, seed=4)
    assert times[0] == 0.0
    assert times[-1] / 1999 == pytest.approx(60.0, rel=0.1)


def test_lost_stages_are_repeated() -> None:
    calm = simulate(Workload(jobs=(rounds(count=10),)), FLOOR, "load-aware")
    stormy = simulate(Workload(jobs=(rounds(count=10),), loss_probability=0.2, seed=1), FLOOR, "load-aware")
    lost = [span for span in stormy.spans if not span.completed]
    assert lost and len(stormy.spans) == len(calm.spans) + len(lost)
    assert stormy.makespan_s > calm.makespan_s


def test_lost_device_costs_the_running_stage_only() -> None:
    outage = (
        ResourceLost(at_s=8.0, name="d"),
        ResourceAdded(at_s=20.0, resource=Device(name="d", key="device")),
    )
    result = simulate(Workload(jobs=(rounds(count=1),), disturbances=outage), FLOOR, "load-aware", check=True)
    assert result.completed_s == {"a": 28.0}


def test_cancelled_and_refused_jobs_are_told_apart() -> None:
    jobs = (rounds("a"), rounds("b"), rounds("c", device_key="missing"))
    trouble = (JobCancelled(at_s=3.0, job="a"),)
    result = simulate(Workload(jobs=jobs, disturbances=trouble), FLOOR, "load-aware", check=True)
    assert (result.cancelled, result.refused, list(result.completed_s)) == (("a",), ("c",), ["b"])


def test_thousand_jobs_end() -> None:
    jobs = tuple(RoundsJob(name=f"j{n}", rounds=1, stages=STAGES) for n in range(1000))
    result = simulate(Workload(jobs=jobs), FLOOR, "load-aware", keep_log=False)
    assert len(result.completed_s) == 1000
    assert not result.spans and not result.events


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: rounds(count=0), "at least 1 of rounds"),
        (lambda: RoundsJob(name="a", rounds=1, stages={"bake": 1.0}), "no stage 'bake'"),
        (lambda: RoundsJob(name="a", rounds=1, stages={}), "at least one stage"),
        (lambda: TimedStep(kind="s", needs=SlotDemand(), parts=()), "needs times"),
        (lambda: TimedStep(kind="s", needs=SlotDemand(), parts=(-1.0,)), "at least 0 s"),
        (lambda: Workload(jobs=(rounds(), rounds())), "two jobs are named 'a'"),
        (lambda: Workload(jobs=(), loss_probability=1.0), "probability"),
        (lambda: poisson_arrivals(3, 0.0, 0), "must be positive"),
    ],
)
def test_senseless_workloads_are_refused(make: object, words: str) -> None:
    assert callable(make)
    with pytest.raises(InputError, match=words):
        make()
