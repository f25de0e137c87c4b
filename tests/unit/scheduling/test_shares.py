"""Tenants share devices by their weights, however many jobs each has."""

import heapq
from collections import Counter

import pytest

from tuneloom.model import Device, Host
from tuneloom.scheduling import Core, policy_named
from tuneloom.scheduling.messages import (
    Command,
    JobSubmitted,
    ResourceAdded,
    ShareUsed,
    StageFinished,
    StartStage,
)
from tuneloom.scheduling.stages import ANY_CORE, DeviceDemand, JobTicket, StageRequest

LANES = 3


class Farm:
    """One device and a small host; every lane of every job alternates between the two for ever."""

    def __init__(self, tenants: dict[str, tuple[float, int]]) -> None:
        """For each tenant its weight and how many jobs it has."""
        self.core = Core(policy_named("load-aware"))
        self.used: Counter[str] = Counter()
        self._running: list[tuple[float, int, StartStage]] = []
        self._count = 0
        self._tell(ResourceAdded(at_s=0.0, resource=Host(name="host", slots=4)))
        self._tell(ResourceAdded(at_s=0.0, resource=Device(name="device", key="cpu")))
        for tenant, (weight, jobs) in tenants.items():
            for number in range(jobs):
                ticket = JobTicket(id=f"{tenant}-{number}", weight=weight, share=tenant)
                ready = tuple(self._request(ticket.id, str(lane), 0) for lane in range(LANES))
                self._tell(JobSubmitted(at_s=0.0, ticket=ticket, ready=ready))

    def run(self, until_s: float) -> Counter[str]:
        """Device time by tenant until then."""
        while self._running and self._running[0][0] < until_s:
            at_s, _, started = heapq.heappop(self._running)
            request = started.request
            if request.kind == "profile":
                self.used[request.job.partition("-")[0]] += 1
            following = self._request(request.job, request.lane, request.step + 1)
            self._tell(StageFinished(at_s=at_s, job=request.job, stage=request.id, ready=(following,)))
            self.core.check()
        return self.used

    def use_elsewhere(self, tenant: str, seconds: float) -> None:
        self._tell(ShareUsed(at_s=self.core.now_s, share=tenant, key="cpu", seconds=seconds))

    def _request(self, job: str, lane: str, step: int) -> StageRequest:
        device = step % 2 == 1
        return StageRequest(
            id=f"{lane}/{step}",
            job=job,
            lane=lane,
            step=step,
            kind="profile" if device else "build",
            needs=DeviceDemand(key="cpu") if device else ANY_CORE,
            then=ANY_CORE if device else DeviceDemand(key="cpu"),
            remaining_s=500.0,
        )

    def _tell(self, event: ResourceAdded | JobSubmitted | StageFinished | ShareUsed) -> None:
        commands: list[Command] = self.core.handle(event)
        for command in commands:
            assert isinstance(command, StartStage)
            self._count += 1
            took_s = 1.0 if command.request.kind == "profile" else 0.5
            heapq.heappush(self._running, (event.at_s + took_s, self._count, command))


def shares(used: Counter[str]) -> dict[str, float]:
    return {tenant: seconds / used.total() for tenant, seconds in used.items()}


def test_a_tenant_with_many_jobs_gets_no_more_than_its_weight() -> None:
    found = shares(Farm({"a": (1.0, 12), "b": (1.0, 2), "c": (2.0, 3)}).run(3000.0))
    assert found == pytest.approx({"a": 0.25, "b": 0.25, "c": 0.5}, abs=0.0125)


def test_what_a_tenant_uses_elsewhere_counts_here() -> None:
    farm = Farm({"a": (1.0, 4), "b": (1.0, 4)})
    farm.run(1000.0)
    farm.use_elsewhere("a", 200.0)
    used = farm.run(3000.0)
    assert used["b"] - used["a"] == pytest.approx(200.0, abs=25.0)


def test_a_share_of_one_job_is_like_no_share() -> None:
    found = shares(Farm({"a": (3.0, 1), "b": (1.0, 1)}).run(2000.0))
    assert sum(found.values()) == pytest.approx(1.0) and found["a"] > found["b"]
