"""The lower bound against the best of all schedules, found by trying every one of tiny workloads."""

from collections.abc import Sequence
from dataclasses import dataclass

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tuneloom.model import Device, Host
from tuneloom.scheduling.stages import Demand, DeviceDemand, JobTicket, SlotDemand
from tuneloom.simulation import RoundsJob, SimulatedJob, TimedStep, lower_bound
from tuneloom.simulation.chain_times import least_span
from tuneloom.simulation.steps import feeds_by_part

Part = tuple[int, int, int]
"""Lane, step and part."""

DEVICE = DeviceDemand(key="device")


@dataclass(frozen=True)
class TinyJob:
    """One chain of steps."""

    ticket: JobTicket
    arrives_s: float
    steps: tuple[TimedStep, ...]
    prior_factor: float | None = None

    def lanes(self) -> tuple[Sequence[TimedStep], ...]:
        return (self.steps,)


class AllSchedules:
    """Starts parts in every order, each on the resource that is free first, and keeps the best end.

    Some optimal schedule is among these: the one whose parts are taken by when they start.
    """

    def __init__(self, jobs: Sequence[SimulatedJob], slots: int, devices: int) -> None:
        self._lanes = [(job.arrives_s, lane) for job in jobs for lane in job.lanes()]
        self._parts = [
            (number, step, part)
            for number, (_, lane) in enumerate(self._lanes)
            for step in range(len(lane))
            for part in range(len(lane[step].parts))
        ]
        self.best_s = float("inf")
        self._try({}, (0.0,) * slots, (0.0,) * devices, 0.0)

    def _try(
        self, ends: dict[Part, float], slots: tuple[float, ...], devices: tuple[float, ...], last_s: float
    ) -> None:
        if len(ends) == len(self._parts):
            self.best_s = min(self.best_s, max(ends.values(), default=0.0))
            return
        for name in self._parts:
            ready_s = self._ready_s(name, ends) if name not in ends else None
            if ready_s is None:
                continue
            step = self._lanes[name[0]][1][name[1]]
            on_device = isinstance(step.needs, DeviceDemand)
            free = devices if on_device else slots
            start_s = max(ready_s, min(free), last_s)
            end_s = start_s + step.parts[name[2]]
            if end_s >= self.best_s:
                continue
            held = tuple(sorted((end_s, *sorted(free)[1:])))
            after = (slots, held) if on_device else (held, devices)
            self._try({**ends, name: end_s}, *after, start_s)

    def _ready_s(self, name: Part, ends: dict[Part, float]) -> float | None:
        lane, step, part = name
        arrives_s, steps = self._lanes[lane]
        if step == 0:
            return arrives_s
        parts = [part] if feeds_by_part(steps, step - 1) else range(len(steps[step - 1].parts))
        before = [ends.get((lane, step - 1, each)) for each in parts]
        known = [end_s for end_s in before if end_s is not None]
        return max(known) if len(known) == len(before) else None


demands: st.SearchStrategy[Demand] = st.sampled_from([SlotDemand(), DEVICE])
durations = st.sampled_from([1.0, 2.0, 5.0, 9.0])


@st.composite
def tiny_jobs(draw: st.DrawFn, name: str) -> TinyJob:
    steps = []
    for _ in range(draw(st.integers(1, 3))):
        parts = tuple(draw(st.lists(durations, min_size=1, max_size=2)))
        kind, needs = draw(st.sampled_from(["a", "b"])), draw(demands)
        steps.append(TimedStep(kind=kind, needs=needs, parts=parts, streamed=draw(st.booleans())))
    return TinyJob(JobTicket(id=name), draw(st.sampled_from([0.0, 1.0, 6.0])), tuple(steps))


@st.composite
def tiny_workloads(draw: st.DrawFn) -> tuple[TinyJob, ...]:
    jobs: list[TinyJob] = []
    for number in range(draw(st.integers(1, 3))):
        job = draw(tiny_jobs(f"j{number}"))
        parts = sum(len(step.parts) for each in (*jobs, job) for step in each.steps)
        if parts <= 7:
            jobs.append(job)
    return tuple(jobs)


def floor(slots: int, devices: int) -> list[Host | Device]:
    return [Host(name="h", slots=slots), *(Device(name=f"d{n}", key="device") for n in range(devices))]


@settings(max_examples=150, deadline=None, database=None)
@given(jobs=tiny_workloads(), slots=st.integers(1, 2), devices=st.integers(1, 2))
def test_no_schedule_at_all_beats_the_bound(jobs: tuple[TinyJob, ...], slots: int, devices: int) -> None:
    best_s = AllSchedules(jobs, slots, devices).best_s if jobs else 0.0
    assert lower_bound(jobs, floor(slots, devices)).seconds <= best_s + 1e-6


@settings(max_examples=40, deadline=None, database=None)
@given(
    rounds=st.tuples(st.integers(1, 3), st.integers(1, 2)),
    seconds=st.tuples(*[durations] * 6),
    late_s=st.sampled_from([0.0, 3.0]),
)
def test_no_schedule_of_rounds_beats_the_bound(
    rounds: tuple[int, int], seconds: tuple[float, ...], late_s: float
) -> None:
    kinds = ("build", "profile", "update")
    jobs = tuple(
        RoundsJob(
            name=f"j{n}",
            rounds=rounds[n],
            stages=dict(zip(kinds, seconds[3 * n : 3 * n + 3], strict=True)),
            arrives_s=n * late_s,
        )
        for n in range(2)
    )
    best_s = AllSchedules(jobs, 1, 1).best_s
    assert lower_bound(jobs, floor(1, 1)).seconds <= best_s + 1e-6


def test_steps_that_stream_into_each_other_are_not_bound_as_if_they_followed() -> None:
    slot = TimedStep(kind="a", needs=SlotDemand(), parts=(1.0, 1.0), streamed=True)
    last = TimedStep(kind="b", needs=DEVICE, parts=(1.0, 1.0))
    job = TinyJob(JobTicket(id="j"), 0.0, (slot, slot, last))
    assert lower_bound((job,), floor(1, 1)).seconds <= AllSchedules((job,), 1, 1).best_s


def test_rounds_may_stream_into_each_other() -> None:
    job = RoundsJob(name="j", rounds=3, stages={"build": 6.0}, parts=2)
    assert lower_bound((job,), floor(1, 1)).seconds <= AllSchedules((job,), 1, 1).best_s


def test_long_turns_of_one_job_hold_another_up_in_its_gaps() -> None:
    long = RoundsJob(name="long", rounds=4, stages={"build": 2.0, "profile": 5.0})
    rival = RoundsJob(name="rival", rounds=2, stages={"build": 3.0, "profile": 6.0})
    bound = lower_bound((long, rival), floor(2, 1))
    best_s = AllSchedules((long, rival), 2, 1).best_s
    assert bound.candidates["gaps of devices device"] == pytest.approx(4 * 7.0 + 2 * (6.0 - 2.0))
    assert bound.plain_s < bound.seconds <= best_s


@settings(max_examples=60, deadline=None, database=None)
@given(parts=st.lists(durations, min_size=1, max_size=6), at_once=st.integers(1, 3))
def test_parts_never_take_less_than_their_least_span(parts: list[float], at_once: int) -> None:
    step = TimedStep(kind="s", needs=SlotDemand(), parts=tuple(parts))
    job = TinyJob(JobTicket(id="j"), 0.0, (step,))
    assert least_span(parts, at_once) <= AllSchedules((job,), at_once, 1).best_s + 1e-9


def test_four_equal_parts_on_three_devices_take_two_turns() -> None:
    assert least_span([2.0] * 4, 3) == 4.0
