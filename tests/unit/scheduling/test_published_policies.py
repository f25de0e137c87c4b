"""Interleaved, sequential and synchronous do what their listings say."""

from itertools import pairwise

import pytest

from tuneloom.model import Device, Host
from tuneloom.scheduling.stages import DeviceDemand
from tuneloom.simulation import ChainJob, RoundsJob, SimulationResult, TimedStep, Workload, simulate

FLOOR: list[Host | Device] = [Host(name="h", slots=1), Device(name="d", key="device")]
STAGES = {"select": 4.0, "build": 2.0, "profile": 5.0, "update": 3.0}


def play(
    policy: str, *jobs: RoundsJob | ChainJob, floor: list[Host | Device] | None = None
) -> SimulationResult:
    return simulate(Workload(jobs=jobs), floor or FLOOR, policy, check=True)


def two(rounds: int = 1, **fields: object) -> tuple[RoundsJob, RoundsJob]:
    a, b = (RoundsJob(name=name, rounds=rounds, stages=STAGES, **fields) for name in "ab")  # type: ignore[arg-type]
    return a, b


def shown(result: SimulationResult, resource: str) -> list[tuple[str, str, float, float]]:
    spans = [span for span in result.spans if span.resource == resource]
    return sorted(((s.job, s.kind, s.start_s, s.end_s) for s in spans), key=lambda item: item[2:])


def test_interleaved_serves_whoever_was_ready_first() -> None:
    result = play("interleaved", *two())
    assert shown(result, "h") == [
        ("a", "select", 0.0, 4.0),
        ("b", "select", 4.0, 8.0),
        ("a", "build", 8.0, 10.0),
        ("b", "build", 10.0, 12.0),
        ("a", "update", 15.0, 18.0),
        ("b", "update", 20.0, 23.0),
    ]
    assert shown(result, "d") == [("a", "profile", 10.0, 15.0), ("b", "profile", 15.0, 20.0)]


def test_interleaved_waits_for_all_parts_of_a_stage() -> None:
    result = play("interleaved", RoundsJob(name="a", rounds=1, stages=STAGES, parts=2))
    builds = [span.end_s for span in result.spans if span.kind == "build"]
    profiles = [span.start_s for span in result.spans if span.kind == "profile"]
    assert max(builds) <= min(profiles)


def test_sequential_runs_one_job_after_the_other() -> None:
    result = play("sequential", *two(rounds=2))
    assert result.completed_s == {"a": 28.0, "b": 56.0}
    assert len(result.spans) == 2 * 2 * len(STAGES)
    assert all(span.job == ("a" if span.end_s <= 28.0 else "b") for span in result.spans)


def test_sequential_never_overlaps_stages_even_of_several_lanes() -> None:
    job = RoundsJob(name="a", rounds=4, stages=STAGES, lanes_in_flight=2)
    spans = sorted(play("sequential", job).spans, key=lambda span: span.start_s)
    assert len(spans) == 4 * len(STAGES)
    assert all(before.end_s <= after.start_s for before, after in pairwise(spans))


def test_sequential_passes_over_a_job_that_can_not_run() -> None:
    step = TimedStep(kind="profile", needs=DeviceDemand(key="missing"), parts=(1.0,))
    stuck = ChainJob(name="stuck", steps=(step,), waits_for_devices=True)
    result = play("sequential", stuck, RoundsJob(name="free", rounds=1, stages=STAGES))
    assert result.completed_s == {"free": 14.0}
    assert result.unfinished == ("stuck",)


@pytest.mark.parametrize("count", [2, 3, 5])
def test_synchronous_jobs_slow_each_other_down_in_proportion(count: int) -> None:
    jobs = [RoundsJob(name=f"j{n}", rounds=3, stages=STAGES) for n in range(count)]
    assert play("synchronous", *jobs).makespan_s == pytest.approx(count * 3 * 14.0)


def test_synchronous_runs_one_kind_of_stage_at_a_time_on_one_resource() -> None:
    result = play("synchronous", *two(rounds=3))
    profiles = [span for span in result.spans if span.kind == "profile"]
    others = [span for span in result.spans if span.kind != "profile"]
    assert {(p.start_s, p.end_s) for p in profiles if p.job == "a"} == {
        (p.start_s, p.end_s) for p in profiles if p.job == "b"
    }
    assert not any(p.start_s < o.end_s and o.start_s < p.end_s for p in profiles for o in others)


def test_synchronous_goes_on_when_an_unequal_job_ends() -> None:
    short = RoundsJob(name="short", rounds=1, stages=STAGES)
    long = RoundsJob(name="long", rounds=5, stages={**STAGES, "build": 9.0})
    result = play("synchronous", short, long)
    assert result.completed_s["short"] < result.completed_s["long"]
    assert not result.unfinished


def test_synchronous_job_keeps_to_the_capacity_for_its_own_parts() -> None:
    job = RoundsJob(name="a", rounds=1, stages=STAGES, parts=4)
    spans = [span for span in play("synchronous", job).spans if span.kind == "profile"]
    spans.sort(key=lambda span: span.start_s)
    assert len(spans) == 4
    assert all(before.end_s <= after.start_s for before, after in pairwise(spans))
