"""The lower bound: what sets it, and that nothing beats it."""

from dataclasses import replace

import pytest

from tuneloom.model import Device, Host
from tuneloom.scheduling import POLICIES
from tuneloom.simulation import RoundsJob, Workload, lower_bound, simulate

PAIR: list[Host | Device] = [Host(name="h", slots=1), Device(name="d", key="device")]


def thesis(count: int, **fields: object) -> tuple[RoundsJob, ...]:
    return tuple(RoundsJob(name=f"j{n}", rounds=10, **fields) for n in range(count))  # type: ignore[arg-type]


def test_one_job_is_bound_by_its_own_chain() -> None:
    bound = lower_bound(thesis(1), PAIR)
    assert bound.seconds == pytest.approx(918.0)
    assert bound.limit == "longest job"


def test_two_jobs_are_bound_by_the_busier_resource() -> None:
    bound = lower_bound(thesis(2), PAIR)
    assert bound.plain_s == pytest.approx(1046.0)
    assert bound.limit == "hosts"


def test_a_device_waits_for_the_first_build_and_is_followed_by_the_last_update() -> None:
    head_s, work_s, tail_s = 22.0 + 8.3, 4 * 395.0, 22.0
    bound = lower_bound(thesis(4), PAIR).candidates["devices device"]
    assert bound == pytest.approx(head_s + work_s + tail_s, rel=1e-3)


def test_work_that_arrives_too_late_to_fill_the_start_moves_the_bound() -> None:
    first, *others = thesis(8)
    late = tuple(replace(job, arrives_s=300.0) for job in others)
    bound = lower_bound((first, *late), PAIR)
    until_then_s = 300.0 * 52.3 / 91.8
    assert bound.plain_s == pytest.approx(8 * 523.0)
    assert bound.seconds == pytest.approx(300.0 + 8 * 523.0 - until_then_s, rel=0.01)


def test_every_device_key_has_its_own_bound() -> None:
    jobs = (*thesis(1), *(RoundsJob(name=f"x{n}", rounds=10, device_key="rare") for n in range(3)))
    floor = [*PAIR, Host(name="h2", slots=9), Device(name="r", key="rare")]
    assert lower_bound(jobs, floor).limit == "devices rare"


def test_late_arrivals_move_the_bound() -> None:
    early, late = thesis(2)
    moved = (early, RoundsJob(name="late", rounds=10, arrives_s=5000.0))
    assert lower_bound(moved, PAIR).seconds == pytest.approx(5918.0)
    assert late.arrives_s == 0.0


def test_streaming_shortens_the_chain() -> None:
    assert lower_bound(thesis(1, parts=8), PAIR).seconds == pytest.approx(10 * (44 + 8.3 / 8 + 39.5))


def test_lending_devices_count_for_both() -> None:
    floor: list[Host | Device] = [Host(name="h", slots=1), Device(name="d", key="device", lends_to="h")]
    bound = lower_bound(thesis(4, lendable_builds=True), floor)
    assert bound.candidates["hosts"] == pytest.approx(4 * 440.0)
    assert bound.candidates["hosts and lending devices"] == pytest.approx(4 * 918.0 / 2)


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("count", [1, 2, 4])
@pytest.mark.parametrize("parts", [1, 4])
def test_no_policy_beats_the_bound(policy: str, count: int, parts: int) -> None:
    jobs = thesis(count, parts=parts)
    result = simulate(Workload(jobs=jobs), PAIR, policy)
    assert result.makespan_s >= lower_bound(jobs, PAIR).seconds - 1e-6


@pytest.mark.parametrize("count", [2, 4, 16])
@pytest.mark.parametrize("prior_factor", [None, 1.0, 5.0])
def test_load_aware_comes_within_five_percent_of_the_bound(count: int, prior_factor: float | None) -> None:
    jobs = thesis(count, prior_factor=prior_factor)
    result = simulate(Workload(jobs=jobs), PAIR, "load-aware", check=True)
    assert result.makespan_s <= 1.05 * lower_bound(jobs, PAIR).seconds
