"""Random jobs on random resources in random trouble: the invariants hold and everybody ends."""

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tuneloom.model import Device, Host
from tuneloom.scheduling import POLICIES, replay
from tuneloom.scheduling.journal import CoreBegan, Decided, read, written, written_start
from tuneloom.scheduling.messages import (
    Event,
    JobCancelled,
    JobPaused,
    JobResumed,
    ResourceAdded,
    ResourceLost,
)
from tuneloom.scheduling.stages import Demand, DeviceDemand, JobTicket, SlotDemand
from tuneloom.simulation import SimulationResult, TimedStep, Workload, lower_bound, simulate
from tuneloom.simulation.steps import feeds_by_part

RESOURCES: list[Host | Device] = [
    Host(name="h0", slots=3),
    Host(name="h1", slots=1),
    Device(name="a0", key="a"),
    Device(name="a1", key="a"),
    Device(name="b0", key="b", lends_to="h0"),
]


@dataclass(frozen=True)
class AnyJob:
    """A job with whatever lanes chance gave it."""

    ticket: JobTicket
    arrives_s: float
    chains: tuple[tuple[TimedStep, ...], ...]
    prior_factor: float | None

    def lanes(self) -> tuple[Sequence[TimedStep], ...]:
        return self.chains


def slot_demands() -> st.SearchStrategy[Demand]:
    wide = st.builds(SlotDemand, slots=st.integers(1, 3), lendable=st.booleans())
    at_home = st.builds(SlotDemand, host=st.sampled_from(["h0", "h1"]), lendable=st.booleans())
    return st.one_of(wide, at_home)


demands = st.one_of(slot_demands(), st.builds(DeviceDemand, key=st.sampled_from(["a", "b"])))
durations = st.sampled_from([0.0, 0.1, 1.0, 3.0, 10.0, 100.0])
steps = st.builds(
    TimedStep,
    kind=st.sampled_from(["select", "build", "profile", "update"]),
    needs=demands,
    parts=st.lists(durations, min_size=1, max_size=3).map(tuple),
    streamed=st.booleans(),
)
at_home = st.builds(
    TimedStep,
    kind=st.sampled_from(["select", "update"]),
    needs=st.builds(SlotDemand, lendable=st.booleans()),
    parts=st.lists(durations, min_size=1, max_size=3).map(tuple),
    home=st.sampled_from(["x", "y"]),
)
steps = st.one_of(steps, at_home)
chains = st.lists(st.lists(steps, min_size=1, max_size=4).map(tuple), min_size=0, max_size=2).map(tuple)
times = st.integers(0, 200).map(float)


@st.composite
def jobs(draw: st.DrawFn, name: str) -> AnyJob:
    ticket = JobTicket(
        id=name,
        priority=draw(st.integers(-1, 2)),
        weight=draw(st.sampled_from([0.5, 1.0, 3.0])),
        deadline_s=draw(st.one_of(st.none(), times)),
        waits_for_devices=True,
    )
    return AnyJob(ticket, draw(times), draw(chains), draw(st.sampled_from([None, 0.1, 1.0, 10.0])))


@st.composite
def trouble(draw: st.DrawFn, everybody: Sequence[AnyJob]) -> tuple[Event, ...]:
    events: list[Event] = []
    for resource in draw(st.lists(st.sampled_from(RESOURCES), max_size=3, unique=True)):
        gone_s, away_s = draw(times), draw(times)
        events.append(ResourceLost(at_s=gone_s + 0.5, name=resource.name))
        events.append(ResourceAdded(at_s=gone_s + away_s + 1.0, resource=resource))
    for job in draw(st.lists(st.sampled_from(everybody), max_size=3)):
        at_s = job.arrives_s + draw(times) + 0.25
        what = draw(st.sampled_from(["pause", "cancel"]))
        if what == "cancel":
            events.append(JobCancelled(at_s=at_s, job=job.ticket.id))
        else:
            events.append(JobPaused(at_s=at_s, job=job.ticket.id))
            events.append(JobResumed(at_s=at_s + draw(times), job=job.ticket.id))
    return tuple(events)


@st.composite
def workloads(draw: st.DrawFn) -> Workload:
    everybody = [draw(jobs(f"j{index}")) for index in range(draw(st.integers(1, 5)))]
    return Workload(
        jobs=tuple(everybody),
        disturbances=draw(trouble(everybody)),
        loss_probability=draw(st.sampled_from([0.0, 0.3])),
        seed=draw(st.integers(0, 9)),
    )


def require_order(workload: Workload, result: SimulationResult) -> None:
    """No stage starts before the one it needs has completed."""
    ends = {(span.job, span.stage): span.end_s for span in result.spans if span.completed}
    lanes = {job.ticket.id: [lane for lane in job.lanes() if lane] for job in workload.jobs}
    for span in result.spans:
        lane, step, part = (int(number) for number in span.stage.split("."))
        if step == 0:
            continue
        chain = lanes[span.job][lane]
        parts = [part] if feeds_by_part(chain, step - 1) else range(len(chain[step - 1].parts))
        for needed in parts:
            assert ends[span.job, f"{lane}.{step - 1}.{needed}"] <= span.start_s + 1e-6


def require_homes(workload: Workload, result: SimulationResult) -> None:
    """Stages with one home run on one host, as long as no host is ever lost."""
    lanes = {job.ticket.id: [lane for lane in job.lanes() if lane] for job in workload.jobs}
    hosts: dict[tuple[str, str], set[str]] = {}
    for span in result.spans:
        lane, step, _ = (int(number) for number in span.stage.split("."))
        home = lanes[span.job][lane][step].home
        if home:
            host = "h0" if span.resource == "b0" else span.resource
            hosts.setdefault((span.job, home), set()).add(host)
    assert all(len(found) == 1 for found in hosts.values())


def require_alone(result: SimulationResult) -> None:
    """Seen from outside, no device has two holders and no host gives more than its slots."""
    slots = {resource.name: resource.slots if isinstance(resource, Host) else 1 for resource in RESOURCES}
    used = dict.fromkeys(slots, 0)
    lasting = [span for span in result.spans if span.end_s > span.start_s]
    changes = [(span.end_s, 0, span.resource, -span.slots) for span in lasting]
    changes += [(span.start_s, 1, span.resource, span.slots) for span in lasting]
    for _, _, resource, change in sorted(changes):
        used[resource] += change
        assert used[resource] <= slots[resource]


@pytest.mark.parametrize("policy", POLICIES)
@settings(max_examples=30, deadline=None, database=None)
@given(workload=workloads())
def test_every_job_ends_and_nothing_is_given_twice(policy: str, workload: Workload) -> None:
    result = simulate(workload, RESOURCES, policy, check=True)
    assert not result.unfinished and not result.refused
    assert set(result.completed_s) | set(result.cancelled) == {job.ticket.id for job in workload.jobs}
    require_order(workload, result)
    if not any(isinstance(e, ResourceLost) and e.name in ("h0", "h1") for e in workload.disturbances):
        require_homes(workload, result)
    if policy != "synchronous":
        require_alone(result)
    if not workload.disturbances:
        assert result.makespan_s >= lower_bound(workload.jobs, RESOURCES).seconds - 1e-6


@pytest.mark.parametrize("policy", POLICIES)
@settings(max_examples=8, deadline=None, database=None)
@given(workload=workloads())
def test_a_log_that_went_through_json_gives_the_commands_that_were_given(
    policy: str, workload: Workload
) -> None:
    result = simulate(workload, RESOURCES, policy)
    log = [written_start(CoreBegan(at_s=0.0, policy=policy))]
    log += [written(event, answer) for event, answer in zip(result.events, result.answers, strict=True)]
    entries = [read(replace(entry, body=json.loads(json.dumps(entry.body)))) for entry in log]
    assert [entry.event for entry in entries if isinstance(entry, Decided)] == list(result.events)
    found = replay(entries)
    assert not found.differences and found.equal == len(result.events) == result.decisions
