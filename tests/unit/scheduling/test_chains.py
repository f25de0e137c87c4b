"""Whose chain counts: jobs that decide when everything ends, forecast or not."""

import pytest

from tuneloom.model import Device, Host
from tuneloom.scheduling.floor import Floor
from tuneloom.scheduling.policies.load_aware.chains import Chains
from tuneloom.scheduling.policies.load_aware.fairness import CHAIN_STAGES, LEVEL_STAGES, Account, Pool
from tuneloom.scheduling.policies.load_aware.pressure import Appetite
from tuneloom.scheduling.records import Job, Stage
from tuneloom.scheduling.stages import JobTicket, SlotDemand, StageRequest
from tuneloom.simulation import RoundsJob, Workload, lower_bound, simulate

PAIR: list[Host | Device] = [Host(name="h", slots=1), Device(name="d", key="device")]
LONG = {"select": 20.0, "build": 20.0, "profile": 20.0, "update": 20.0}
SHORT = {"select": 2.0, "build": 2.0, "profile": 2.0, "update": 2.0}


def job(name: str) -> Job:
    return Job(JobTicket(id=name), 0, 0.0)


def chains() -> Chains:
    floor = Floor()
    for resource in PAIR:
        floor.add(resource, 0.0)
    return Chains(floor)


def part(owner: Job, step: int, number: int) -> Stage:
    request = StageRequest(
        id=f"{step}.{number}", job=owner.id, lane="l", step=step, kind="s", needs=SlotDemand()
    )
    return Stage(request, owner, number, 0.0)


def test_the_chain_that_outlasts_the_work_of_all_weighs_most() -> None:
    all_chains, long, short = chains(), Appetite(), Appetite()
    for _ in range(40):
        all_chains.weight(short, 100.0, job("short"), 0)
    assert all_chains.weight(long, 1000.0, job("long"), 0) == 1.0
    assert all_chains.weight(short, 100.0, job("short"), 0) == 0.0


def test_equal_chains_weigh_nothing() -> None:
    all_chains, appetites = chains(), [Appetite() for _ in range(3)]
    for _ in range(2):
        weights = [all_chains.weight(each, 500.0, job(f"j{n}"), 0) for n, each in enumerate(appetites)]
    assert weights == [0.0, 0.0, 0.0]


def test_a_chain_that_hardly_meets_others_may_share() -> None:
    all_chains, long, short = chains(), Appetite(), Appetite()
    all_chains.weight(short, 1.0, job("short"), 0)
    assert all_chains.weight(long, 1000.0, job("long"), 0) == 0.0


def test_a_job_that_ended_counts_no_more() -> None:
    all_chains, one, other = chains(), Appetite(), Appetite()
    all_chains.weight(one, 500.0, job("one"), 0)
    all_chains.weight(other, 1000.0, job("other"), 0)
    all_chains.left(one)
    assert all_chains.weight(other, 1000.0, job("other"), 0) == 0.0


def test_a_job_without_forecasts_is_as_long_as_its_steps() -> None:
    quick, slow = Appetite(total_s=10.0), Appetite(total_s=100.0)
    assert slow.remaining_s(None, 5) == pytest.approx(10 * quick.remaining_s(None, 5))
    assert Appetite().remaining_s(None, 0) == 0.0


def test_forecasts_are_read_as_earlier_ones_teach() -> None:
    appetite = Appetite()
    appetite.compare(1.0, 10.0)
    assert appetite.remaining_s(50.0, 1) == pytest.approx(500.0)


def test_worth_is_counted_in_whole_stages_not_in_their_parts() -> None:
    owner = job("a")
    account, pool = Account(owner), Pool("", 1.0)
    for number in range(4):
        stage = part(owner, 0, number)
        tag = pool.tag(account, stage, 0.0)
        pool.charge(account, tag, 5.0)
        pool.settle(account, 5.0, 5.0)
    assert pool.chain_s == pytest.approx(CHAIN_STAGES * 20.0)
    assert pool.level_s == pytest.approx(LEVEL_STAGES * 20.0)


@pytest.mark.parametrize("prior_factor", [None, 1.0, 0.1, 10.0])
def test_a_long_job_among_short_ones_is_not_left_for_the_end(prior_factor: float | None) -> None:
    long = RoundsJob(name="long", rounds=20, stages=LONG, prior_factor=prior_factor)
    shorts = tuple(
        RoundsJob(name=f"short-{n}", rounds=20, stages=SHORT, prior_factor=prior_factor) for n in range(8)
    )
    jobs = (*shorts, long)
    result = simulate(Workload(jobs=jobs), PAIR, "load-aware", check=True)
    assert result.makespan_s <= 1.10 * lower_bound(jobs, PAIR).seconds


def test_jobs_of_equal_steps_share_fairly_although_nobody_forecasts() -> None:
    jobs = tuple(RoundsJob(name=f"j{n}", rounds=20, stages=SHORT) for n in range(4))
    result = simulate(Workload(jobs=jobs), PAIR, "load-aware")
    ends = sorted(result.completed_s.values())
    assert ends[0] > 0.9 * ends[-1]
