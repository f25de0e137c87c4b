"""How long the core thinks about one event, and how its memory grows with the jobs.

Usage: python benchmarks/core_overhead.py [--jobs 10000] [--devices 1000] [--out FILE]

Simulates that many jobs on that many devices and measures every call of `handle` with
a real clock. All jobs are there at once, so the lines are as long as they can be.
"""

import argparse
import json
import platform
import random
import statistics
import time
import tracemalloc
from pathlib import Path

from tuneloom.model import Device, Host
from tuneloom.scheduling import Core, policy_named
from tuneloom.scheduling.messages import Command, Event
from tuneloom.scheduling.policies import Policy
from tuneloom.simulation import THESIS_STAGES, RoundsJob, Workload
from tuneloom.simulation.simulator import Simulator

OUT = Path(__file__).parent / "results" / "core_overhead.json"


class TimedCore(Core):
    """A core that notes how long each decision took and how deep the state was."""

    def __init__(self, policy: Policy) -> None:
        super().__init__(policy)
        self.times_ns: list[int] = []
        self.live_jobs: list[int] = []

    def handle(self, event: Event) -> list[Command]:
        start_ns = time.perf_counter_ns()
        commands = super().handle(event)
        self.times_ns.append(time.perf_counter_ns() - start_ns)
        self.live_jobs.append(len(self.jobs))
        return commands


def many_jobs(count: int, keys: int, rounds: int, seed: int) -> tuple[RoundsJob, ...]:
    chance = random.Random(seed)
    return tuple(
        RoundsJob(
            name=f"job-{index}",
            rounds=rounds,
            stages={kind: seconds * 10 ** chance.uniform(-1, 1) for kind, seconds in THESIS_STAGES.items()},
            device_key=f"kind-{chance.randrange(keys)}",
            priority=chance.choice((0, 0, 0, 1)),
            prior_factor=10 ** chance.uniform(-1, 1),
        )
        for index in range(count)
    )


def floor_of(devices: int, keys: int) -> list[Host | Device]:
    hosts: list[Host | Device] = [
        Host(name=f"host-{index}", slots=16) for index in range(max(1, devices // 20))
    ]
    return hosts + [Device(name=f"device-{index}", key=f"kind-{index % keys}") for index in range(devices)]


def timed(jobs: int, devices: int, policy: str, rounds: int) -> dict[str, float | int | str]:
    keys = min(20, devices)
    workload = Workload(jobs=many_jobs(jobs, keys, rounds, seed=1))
    simulator = Simulator(workload, floor_of(devices, keys), policy, check=False, keep_log=False)
    core = TimedCore(policy_named(policy))
    simulator.core = core
    result = simulator.run()
    assert not result.unfinished and len(result.completed_s) == jobs
    crowded = [ns for ns, live in zip(core.times_ns, core.live_jobs, strict=True) if live > jobs / 2]
    percentiles = statistics.quantiles(core.times_ns, n=100)
    return {
        "policy": policy,
        "jobs": jobs,
        "devices": devices,
        "decisions": len(core.times_ns),
        "median_us": round(statistics.median(core.times_ns) / 1e3, 2),
        "median_us_over_half_the_jobs_alive": round(statistics.median(crowded) / 1e3, 2),
        "p99_us": round(percentiles[98] / 1e3, 2),
        "max_us": round(max(core.times_ns) / 1e3, 1),
    }


def bytes_per_job(jobs: int, devices: int) -> float:
    """What the core keeps for a job that was submitted and waits or runs."""
    keys = min(20, devices)
    workload = Workload(jobs=many_jobs(jobs, keys, 1, seed=1))
    simulator = Simulator(workload, floor_of(devices, keys), "load-aware", check=False, keep_log=False)
    events = []
    core = Core(policy_named("load-aware"))
    for at_s, _, happening in sorted(simulator._agenda, key=lambda item: item[:2]):
        simulator._now_s = at_s
        events.append(simulator._event_of(happening))
    tracemalloc.start()
    for event in events:
        assert event is not None
        core.handle(event)
    used, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return used / jobs


def main() -> None:
    parser = argparse.ArgumentParser(description="time the core's decisions")
    parser.add_argument("--jobs", type=int, default=10_000)
    parser.add_argument("--devices", type=int, default=1_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--out", type=Path, default=OUT)
    arguments = parser.parse_args()
    small = max(10, arguments.jobs // 10)
    rows = [
        timed(small, arguments.devices, "load-aware", arguments.rounds),
        timed(arguments.jobs, arguments.devices, "load-aware", arguments.rounds),
        timed(arguments.jobs, arguments.devices, "interleaved", arguments.rounds),
    ]
    memory = {count: round(bytes_per_job(count, arguments.devices)) for count in (small, arguments.jobs)}
    report = {
        "machine": f"{platform.machine()}, Python {platform.python_version()}",
        "decisions": rows,
        "bytes_per_job": memory,
    }
    arguments.out.parent.mkdir(parents=True, exist_ok=True)
    arguments.out.write_text(json.dumps(report, indent=2) + "\n")
    print("| policy | jobs | devices | decisions | median µs | median µs, crowded | p99 µs |")
    print("| --- | --- | --- | --- | --- | --- | --- |")
    for row in rows:
        shown = (
            "policy",
            "jobs",
            "devices",
            "decisions",
            "median_us",
            "median_us_over_half_the_jobs_alive",
            "p99_us",
        )
        print("| " + " | ".join(str(row[name]) for name in shown) + " |")
    print("\nbytes a live job:", ", ".join(f"{count} jobs: {size}" for count, size in memory.items()))


if __name__ == "__main__":
    main()
