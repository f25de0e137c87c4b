"""Jobs of equal priority: a long one does not keep a short one waiting."""

import pytest

from tuneloom.model import Device, Host
from tuneloom.simulation import RoundsJob, Workload, simulate

STAGES = {"select": 2.0, "build": 4.0, "profile": 4.0, "update": 1.0}
ALONE_S = 3 * sum(STAGES.values())
PAIR: list[Host | Device] = [Host(name="h", slots=1), Device(name="d", key="device")]


@pytest.mark.parametrize("rounds", [100, 1000])
@pytest.mark.parametrize("prior_factor", [None, 1.0, 10.0, 0.1])
def test_a_short_job_beside_a_long_one_stays_a_few_times_its_own_length(
    rounds: int, prior_factor: float | None
) -> None:
    long = RoundsJob(name="long", rounds=rounds, stages=STAGES, prior_factor=prior_factor, lanes_in_flight=3)
    short = RoundsJob(name="short", rounds=3, stages=STAGES, prior_factor=prior_factor, arrives_s=60.0)
    result = simulate(Workload(jobs=(long, short)), PAIR, "load-aware", keep_log=False)
    assert result.completed_s["short"] - short.arrives_s <= 5 * ALONE_S


@pytest.mark.parametrize("prior_factor", [None, 1.0])
def test_many_short_jobs_are_served_while_a_long_one_goes_on(prior_factor: float | None) -> None:
    long = RoundsJob(name="long", rounds=300, stages=STAGES, prior_factor=prior_factor, lanes_in_flight=3)
    shorts = tuple(
        RoundsJob(
            name=f"short-{n}", rounds=3, stages=STAGES, prior_factor=prior_factor, arrives_s=60.0 + 100.0 * n
        )
        for n in range(10)
    )
    result = simulate(Workload(jobs=(long, *shorts)), PAIR, "load-aware", keep_log=False)
    stays = [result.completed_s[job.name] - job.arrives_s for job in shorts]
    assert max(stays) < result.completed_s["long"] / 3
