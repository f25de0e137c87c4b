"""Do tenants get device time by their weights, however many jobs each has? In simulated time.

    python benchmarks/service_shares_simulated.py [--jobs 100] [--tenants 10] [--seconds 900]

The store hands out runs and counts what was used, and the scheduler decides, as they do in a service;
only the stages are mock ones that take simulated time. One executor, then two, each with a host of eight
slots and a device of its own, and long stages of unequal length. `service_shares.py` measures the same
with real executors. Adds its rows to benchmarks/results/service_shares.json and exits with 1 if a share is
off by more than 5 %.
"""

import argparse
import heapq
import random
import sys
import tempfile
from collections import Counter
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from service_shares import judged, tenants_of, told
from tuneloom.app.runs.executing.run_listener import ShareBook
from tuneloom.model import Device, Host
from tuneloom.scheduling import Core, policy_named
from tuneloom.scheduling.messages import (
    Command,
    Event,
    JobSubmitted,
    ResourceAdded,
    ShareUsed,
    StageFinished,
    StartStage,
)
from tuneloom.scheduling.stages import ANY_CORE, DeviceDemand, JobTicket, StageRequest
from tuneloom.store import Store, Submission, TenantLimits, open_store

KINDS = ("select", "build", "profile", "update")
MEAN_S = {"select": 0.4, "build": 0.5, "profile": 0.3, "update": 0.2}
LANES, SLOTS, MOST_RUNS, LOOK_S, KEY = 3, 8, 16, 1.0, "cpu"


@dataclass
class SimulatedExecutor:
    """Claims runs as an executor does and lets its core decide about their stages."""

    store: Store
    name: str
    chance: random.Random
    core: Core = field(default_factory=lambda: Core(policy_named("load-aware")))
    now_s: float = 0.0
    runs: list[str] = field(default_factory=list)
    used: "Counter[str]" = field(default_factory=Counter)
    _tenants: dict[str, str] = field(default_factory=dict)
    _running: list[tuple[float, int, StartStage]] = field(default_factory=list)
    _count: int = 0

    def __post_init__(self) -> None:
        self._book = ShareBook(self.store, self._used_elsewhere)
        self._tell(ResourceAdded(at_s=0.0, resource=Host(name="host", slots=SLOTS)))
        self._tell(ResourceAdded(at_s=0.0, resource=Device(name="device", key=KEY)))

    def run(self, until_s: float) -> None:
        """Carry out what it has until then, and look around."""
        while self._running and self._running[0][0] <= until_s:
            at_s, _, started = heapq.heappop(self._running)
            self.now_s = at_s
            self._ended(started.request)
        self.now_s = until_s
        self._book.settle()
        self._claim()

    def _claim(self) -> None:
        while True:
            beside = self.runs if len(self.runs) >= MOST_RUNS else None
            lease = self.store.claim_run(self.name, 1e9, beside=beside)
            share = self.store.share_of(lease.run) if lease is not None else None
            if lease is None or share is None:
                return
            self.runs.append(lease.run)
            self._tenants[lease.run] = share.tenant
            ticket = JobTicket(id=lease.run, weight=share.weight, share=share.tenant)
            ready = tuple(self._request(lease.run, str(lane), 0) for lane in range(LANES))
            self._tell(JobSubmitted(at_s=self.now_s, ticket=ticket, ready=ready))

    def _ended(self, request: StageRequest) -> None:
        following = self._request(request.job, request.lane, request.step + 1)
        self._tell(StageFinished(at_s=self.now_s, job=request.job, stage=request.id, ready=(following,)))

    def _request(self, job: str, lane: str, step: int) -> StageRequest:
        kind, on_device = KINDS[step % 4], DeviceDemand(key=KEY)
        return StageRequest(
            id=f"{lane}/{step}",
            job=job,
            lane=lane,
            step=step,
            kind=kind,
            needs=on_device if kind == "profile" else ANY_CORE,
            then=on_device if kind == "build" else ANY_CORE,
            remaining_s=1000.0,
        )

    def _used_elsewhere(self, tenant: str, key: str, seconds: float) -> None:
        self._tell(ShareUsed(at_s=self.now_s, share=tenant, key=key, seconds=seconds))

    def _tell(self, event: Event) -> None:
        commands: list[Command] = self.core.handle(event)
        for command in commands:
            if isinstance(command, StartStage):
                self._start(command)

    def _start(self, command: StartStage) -> None:
        kind = command.request.kind
        took_s = MEAN_S[kind] * self.chance.lognormvariate(0.0, 0.3)
        self._count += 1
        heapq.heappush(self._running, (self.now_s + took_s, self._count, command))
        if kind == "profile":
            tenant = self._tenants[command.request.job]
            self.used[tenant] += took_s  # type: ignore[assignment]  # counters add floats as well
            self._book.used(tenant, KEY, took_s)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--jobs", type=int, default=100)
    parser.add_argument("--tenants", type=int, default=10)
    parser.add_argument("--seconds", type=int, default=900)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    return told([measure(options, executors) for executors in (1, 2)])


def measure(options: argparse.Namespace, count: int) -> dict[str, Any]:
    tenants = tenants_of(options.tenants, options.jobs)
    with tempfile.TemporaryDirectory() as folder, closing(open_store(Path(folder) / "store.db")) as store:
        for tenant in tenants:
            store.add_tenant(tenant.name, TenantLimits(weight=tenant.weight, jobs_at_once=10**6))
            for number in range(tenant.jobs):
                store.submit_job(submission(tenant.name, number), {})
        chances = [random.Random(options.seed + number) for number in range(count)]
        several = [SimulatedExecutor(store, f"e{n}", chance) for n, chance in enumerate(chances)]
        before: Counter[str] = Counter()
        for second in range(options.seconds):
            for executor in several:
                executor.run(second + LOOK_S)
            if second == options.seconds // 10:
                before = sum((executor.used for executor in several), Counter())
        after = sum((executor.used for executor in several), Counter())
    return {
        "stages": "simulated",
        "executors": count,
        "jobs": options.jobs,
        "seconds": options.seconds,
        **judged(tenants, after - before),
    }


def submission(tenant: str, number: int) -> Submission:
    return Submission(
        tenant=tenant,
        token="t",
        name=f"job-{number}",
        model="mock:tasks=1",
        spec={},
        trials=1,
        request=f"{tenant}-{number}",
    )


if __name__ == "__main__":
    sys.exit(main())
