"""How long the core thinks about one event, and how its memory grows with the jobs.

Usage: python benchmarks/core_overhead.py [--jobs 10000] [--devices 1000] [--out FILE]

Simulates that many jobs on that many devices, keeps the log, and replays it several
times with a real clock around every call of `handle`. All jobs are there at once, so
the lines are as long as they can be.

Other programs slow a shared machine down, and not evenly. So a small fixed loop is timed
after every hundredth decision: how much slower it usually ran than in its best twentieth is
told beside the median, and the median divided by that is what a quieter machine would need.
"""

import argparse
import json
import os
import platform
import random
import statistics
import time
import tracemalloc
from dataclasses import dataclass
from pathlib import Path

from tuneloom.model import Device, Host
from tuneloom.scheduling import Core, policy_named
from tuneloom.scheduling.messages import Event, JobSubmitted, ResourceAdded
from tuneloom.simulation import THESIS_STAGES, RoundsJob, Workload, simulate
from tuneloom.simulation.progress import Progress

OUT = Path(__file__).parent / "results" / "core_overhead.json"

Row = dict[str, float | int | str]


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


@dataclass(frozen=True, slots=True)
class Replay:
    """Nanoseconds of every decision, and of the fixed loop between some of them."""

    decisions_ns: list[int]
    loops_ns: list[int]


def fixed_loop_ns() -> int:
    """How long some work of the kind that the core does takes: look up, add, keep."""
    start_ns = time.perf_counter_ns()
    book: dict[int, int] = {}
    for number in range(200):
        book[number] = book.get(number - 1, 0) + 1
    return time.perf_counter_ns() - start_ns


def replay_timed(policy: str, events: tuple[Event, ...]) -> Replay:
    core, times = Core(policy_named(policy)), Replay([], [])
    for number, event in enumerate(events):
        start_ns = time.perf_counter_ns()
        core.handle(event)
        times.decisions_ns.append(time.perf_counter_ns() - start_ns)
        if number % 100 == 0:
            times.loops_ns.append(fixed_loop_ns())
    return times


def timed(jobs: int, devices: int, policy: str, rounds: int, passes: int) -> Row:
    keys = min(20, devices)
    workload = Workload(jobs=many_jobs(jobs, keys, rounds, seed=1))
    result = simulate(workload, floor_of(devices, keys), policy)
    assert not result.unfinished and len(result.completed_s) == jobs
    replays = [replay_timed(policy, result.events) for _ in range(passes)]
    decisions_us = [ns / 1e3 for replay in replays for ns in replay.decisions_ns]
    loops_ns = [ns for replay in replays for ns in replay.loops_ns]
    median_us = statistics.median(decisions_us)
    slowed = statistics.median(loops_ns) / statistics.quantiles(loops_ns, n=20)[0]
    return {
        "policy": policy,
        "jobs": jobs,
        "devices": devices,
        "decisions": len(result.events),
        "passes": passes,
        "median_us": round(median_us, 1),
        "p99_us": round(statistics.quantiles(decisions_us, n=100)[98], 1),
        "slowed_by_others": round(slowed, 2),
        "median_us_if_quiet": round(median_us / slowed, 1),
    }


def bytes_per_job(jobs: int, devices: int) -> float:
    """What the core keeps for a job that was submitted and waits or runs."""
    keys = min(20, devices)
    events: list[Event] = [ResourceAdded(at_s=0.0, resource=resource) for resource in floor_of(devices, keys)]
    for job in many_jobs(jobs, keys, 1, seed=1):
        events.append(JobSubmitted(at_s=0.0, ticket=job.ticket, ready=Progress(job).start()))
    core = Core(policy_named("load-aware"))
    tracemalloc.start()
    for event in events:
        core.handle(event)
    used, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return used / jobs


def main() -> None:
    parser = argparse.ArgumentParser(description="time the core's decisions")
    parser.add_argument("--jobs", type=int, default=10_000)
    parser.add_argument("--devices", type=int, default=1_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--passes", type=int, default=3)
    parser.add_argument("--out", type=Path, default=OUT)
    arguments = parser.parse_args()
    small = max(10, arguments.jobs // 10)
    rows = [
        timed(small, arguments.devices, "load-aware", arguments.rounds, arguments.passes),
        timed(arguments.jobs, arguments.devices, "load-aware", arguments.rounds, arguments.passes),
        timed(arguments.jobs, arguments.devices, "interleaved", arguments.rounds, arguments.passes),
    ]
    memory = {count: round(bytes_per_job(count, arguments.devices)) for count in (small, arguments.jobs)}
    report = {
        "machine": f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}",
        "decisions": rows,
        "bytes_per_job": memory,
    }
    arguments.out.parent.mkdir(parents=True, exist_ok=True)
    arguments.out.write_text(json.dumps(report, indent=2) + "\n")
    names = list(rows[0])
    print("| " + " | ".join(names) + " |\n|" + " --- |" * len(names))
    for row in rows:
        print("| " + " | ".join(str(row[name]) for name in names) + " |")
    print("\nbytes a live job:", ", ".join(f"{count} jobs: {size}" for count, size in memory.items()))


if __name__ == "__main__":
    main()
