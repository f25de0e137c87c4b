"""What every scheduling policy fulfils, as tests that authors of policies inherit.

class TestMyPolicy(PolicyContract):
    def policy(self) -> Policy: ...
"""

import random

import pytest

from tuneloom.model import Device, Host
from tuneloom.scheduling import Core
from tuneloom.scheduling.messages import (
    Command,
    Event,
    FinishJob,
    JobCancelled,
    JobPaused,
    JobResumed,
    JobSubmitted,
    ResourceAdded,
    ResourceLost,
    StageFinished,
    StageLost,
    StartStage,
)
from tuneloom.scheduling.policies import Policy
from tuneloom.scheduling.stages import Demand, DeviceDemand, JobTicket, SlotDemand, StageRequest
from tuneloom.simulation import ChainJob, SimulationResult, TimedStep, Workload, simulate

GPU = DeviceDemand(key="gpu")
RESOURCES: tuple[Host | Device, ...] = (
    Host(name="h0", slots=2, machine="m0"),
    Host(name="h1", slots=1, machine="m1"),
    Device(name="gpu0", key="gpu", machine="m1"),
    Device(name="cpu0", key="cpu", lends_to="h0", machine="m0"),
)


def request(job: str, name: str, needs: Demand | None = None, *, step: int = 0) -> StageRequest:
    """A stage in a lane of its own."""
    return StageRequest(id=name, job=job, lane=name, step=step, kind="work", needs=needs or SlotDemand())


def submitted(job: str, *ready: StageRequest, at_s: float = 0.0) -> JobSubmitted:
    return JobSubmitted(at_s=at_s, ticket=JobTicket(id=job, waits_for_devices=True), ready=ready)


def started(commands: list[Command]) -> list[tuple[str, str, str]]:
    """Job, stage and resource of everything that was started."""
    return [
        (command.request.job, command.request.id, command.grant.resource)
        for command in commands
        if isinstance(command, StartStage)
    ]


class PolicyContract:
    """Inherit, and say which policy; every call has to give a fresh one."""

    seeds = range(12)

    def policy(self) -> Policy:
        """The policy to look at."""
        raise NotImplementedError

    def test_it_has_a_name(self) -> None:
        assert self.policy().name

    def test_what_can_start_is_started_at_once(self) -> None:
        core = self._core(Host(name="h", slots=1))
        assert started(core.handle(submitted("a", request("a", "s")))) == [("a", "s", "h")]
        core.check()

    def test_who_waits_is_served_when_room_comes(self) -> None:
        core = self._core(Host(name="h", slots=1))
        core.handle(submitted("a", request("a", "s")))
        assert started(core.handle(submitted("b", request("b", "s")))) in ([], [("b", "s", "h")])
        core.handle(StageFinished(at_s=1.0, job="a", stage="s", done=True))
        assert "b" not in core.jobs or core.jobs["b"].running == 1
        core.check()

    def test_a_device_has_one_holder_unless_the_policy_shares_on_purpose(self) -> None:
        core = self._core(Device(name="gpu0", key="gpu"))
        for job in ("a", "b"):
            core.handle(submitted(job, request(job, "p", GPU)))
        holders = len(core.floor.seats["gpu0"].holders)
        assert holders == 1 or core.policy.overlaps
        core.check()

    def test_a_stage_that_was_lost_starts_again(self) -> None:
        core = self._core(Host(name="h", slots=1))
        core.handle(submitted("a", request("a", "s")))
        assert started(core.handle(StageLost(at_s=1.0, job="a", stage="s"))) == [("a", "s", "h")]
        core.check()

    def test_a_paused_job_starts_nothing_until_it_goes_on(self) -> None:
        core = self._core(Host(name="h", slots=1))
        core.handle(submitted("a", request("a", "s"), request("a", "t")))
        core.handle(JobPaused(at_s=1.0, job="a"))
        assert started(core.handle(StageFinished(at_s=2.0, job="a", stage="s"))) == []
        assert started(core.handle(JobResumed(at_s=3.0, job="a"))) == [("a", "t", "h")]
        core.check()

    def test_a_cancelled_job_gives_way(self) -> None:
        core = self._core(Host(name="h", slots=1))
        core.handle(submitted("a", request("a", "s"), request("a", "t")))
        core.handle(submitted("b", request("b", "s")))
        commands = core.handle(JobCancelled(at_s=1.0, job="a"))
        assert FinishJob(job="a", cancelled=True) in commands
        assert core.jobs["b"].running == 1
        core.check()

    def test_a_resource_that_joins_serves_who_waited_for_it(self) -> None:
        core = self._core(Host(name="h", slots=1))
        assert started(core.handle(submitted("a", request("a", "p", GPU)))) == []
        late = core.handle(ResourceAdded(at_s=5.0, resource=Device(name="gpu0", key="gpu")))
        assert started(late) == [("a", "p", "gpu0")]
        core.check()

    def test_what_ran_on_a_lost_resource_runs_elsewhere(self) -> None:
        core = self._core(Device(name="gpu0", key="gpu"), Device(name="gpu1", key="gpu"))
        ((_, _, first),) = started(core.handle(submitted("a", request("a", "p", GPU))))
        again = started(core.handle(ResourceLost(at_s=1.0, name=first)))
        assert again == [("a", "p", "gpu1" if first == "gpu0" else "gpu0")]
        core.check()

    def test_a_stage_that_no_resource_fits_holds_nobody_up(self) -> None:
        core = self._core(Host(name="h", slots=1))
        core.handle(submitted("stuck", request("stuck", "p", DeviceDemand(key="nobody has it"))))
        assert started(core.handle(submitted("a", request("a", "s")))) == [("a", "s", "h")]
        core.check()

    def test_a_stage_bound_to_a_host_runs_there(self) -> None:
        core = self._core(Host(name="h0", slots=4), Host(name="h1", slots=1))
        bound = request("a", "s", SlotDemand(host="h1"))
        assert started(core.handle(submitted("a", bound))) == [("a", "s", "h1")]
        core.check()

    @pytest.mark.parametrize("seed", seeds)
    def test_every_job_ends_whatever_comes_and_goes(self, seed: int) -> None:
        workload = troubled_workload(seed)
        result = simulate(workload, RESOURCES, self.policy(), check=True)
        ended = {*result.completed_s, *result.cancelled}
        assert ended == {job.ticket.id for job in workload.jobs} and not result.unfinished

    @pytest.mark.parametrize("seed", [0, 1])
    def test_the_same_events_give_the_same_commands(self, seed: int) -> None:
        def played() -> SimulationResult:
            return simulate(troubled_workload(seed), RESOURCES, self.policy())

        first, second = played(), played()
        assert first.events == second.events and first.answers == second.answers

    def _core(self, *resources: Host | Device) -> Core:
        core = Core(self.policy())
        for resource in resources:
            core.handle(ResourceAdded(at_s=0.0, resource=resource))
        return core


def troubled_workload(seed: int) -> Workload:
    """A few jobs by chance, in trouble: resources go and come back, stages get lost, jobs are paused."""
    chance = random.Random(seed)
    jobs = tuple(_job(chance, f"j{number}") for number in range(chance.randint(2, 6)))
    trouble: list[Event] = []
    for resource in chance.sample(RESOURCES, 2):
        gone_s = chance.uniform(0.0, 50.0)
        trouble.append(ResourceLost(at_s=gone_s, name=resource.name))
        trouble.append(ResourceAdded(at_s=gone_s + chance.uniform(1.0, 50.0), resource=resource))
    held, dropped = chance.sample(jobs, 2)
    trouble.append(JobPaused(at_s=held.arrives_s + 5.25, job=held.name))
    trouble.append(JobResumed(at_s=held.arrives_s + 25.25, job=held.name))
    trouble.append(JobCancelled(at_s=dropped.arrives_s + 30.25, job=dropped.name))
    return Workload(jobs=jobs, disturbances=tuple(trouble), loss_probability=0.1, seed=seed)


def _job(chance: random.Random, name: str) -> ChainJob:
    steps = tuple(_step(chance) for _ in range(chance.randint(1, 8)))
    return ChainJob(name=name, steps=steps, arrives_s=chance.choice((0.0, 0.0, 12.5)), waits_for_devices=True)


def _step(chance: random.Random) -> TimedStep:
    kind = chance.choice(("select", "build", "profile"))
    parts = tuple(chance.choice((0.0, 0.5, 2.0, 7.0)) for _ in range(chance.randint(1, 3)))
    if kind == "profile":
        return TimedStep(kind=kind, needs=DeviceDemand(key=chance.choice(("gpu", "cpu"))), parts=parts)
    if kind == "select":
        return TimedStep(kind=kind, needs=SlotDemand(lendable=True), parts=parts, home="search")
    slots = chance.choice((1, 1, 2))
    return TimedStep(
        kind=kind, needs=SlotDemand(slots=slots, lendable=slots == 1), parts=parts, streamed=True
    )
