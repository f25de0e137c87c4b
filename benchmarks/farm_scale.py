"""A large farm in simulated time: how near the makespan comes to its bound while machines come and go.

Usage: python benchmarks/farm_scale.py [--jobs 10000] [--machines 200] [--out FILE]

Every machine has a host and five devices; there are twenty kinds of devices. Each machine is away
for some minutes once or twice. The bound is what no schedule can beat: no pool of resources can
do its work sooner than its capacity allows, counted while it was there, and no job ends before its
own chain of stages. Work that is lost with a machine and done again is not in the bound. The core's
decisions are timed by the clock and in CPU time: on a machine that others use, too, the clock counts
what they take.
"""

import argparse
import json
import platform
import random
import resource
import statistics
import time
from collections import defaultdict
from collections.abc import Iterable, Sequence
from pathlib import Path

from tuneloom.model import Device, Host
from tuneloom.scheduling.messages import Command, Event, ResourceAdded, ResourceLost
from tuneloom.simulation import THESIS_STAGES, RoundsJob, Workload
from tuneloom.simulation.simulator import Simulator

OUT = Path(__file__).parent / "results" / "farm_scale.json"
KINDS = 20
DEVICES = 5
SLOTS = 16
Away = dict[int, list[tuple[float, float]]]


def jobs_of(count: int, rounds: int, seed: int) -> tuple[RoundsJob, ...]:
    chance = random.Random(seed)
    return tuple(
        RoundsJob(
            name=f"job-{index}",
            rounds=rounds,
            stages={kind: s * 10 ** chance.uniform(-0.5, 0.5) for kind, s in THESIS_STAGES.items()},
            device_key=f"kind-{index % KINDS}",
            prior_factor=10 ** chance.uniform(-0.5, 0.5),
        )
        for index in range(count)
    )


def machine_of(index: int) -> list[Host | Device]:
    name = f"machine-{index}"
    devices = [
        Device(name=f"{name}/{n}", key=f"kind-{(index * DEVICES + n) % KINDS}", machine=name)
        for n in range(DEVICES)
    ]
    return [Host(name=f"{name}/host", slots=SLOTS, machine=name), *devices]


def absences(machines: int, until_s: float, seed: int) -> Away:
    """When each machine is away: once or twice, for five to fifteen minutes."""
    chance, away = random.Random(seed), {}
    for index in range(machines):
        left = sorted(chance.uniform(0, until_s) for _ in range(chance.choice((1, 1, 2))))
        away[index] = [(s, s + chance.uniform(300, 900)) for s in left]
        if len(left) == 2 and away[index][0][1] > left[1]:
            del away[index][1]
    return away


def disturbances(away: Away) -> tuple[Event, ...]:
    events: list[Event] = []
    for index, times in away.items():
        for left_s, back_s in times:
            for part in reversed(machine_of(index)):
                events.append(ResourceLost(at_s=left_s, name=part.name))
            events += [ResourceAdded(at_s=back_s, resource=part) for part in machine_of(index)]
    return tuple(sorted(events, key=lambda event: event.at_s))


def bound_s(jobs: Sequence[RoundsJob], machines: int, away: Away) -> tuple[float, str]:
    """The largest of what pools and chains need, and which of them it is."""
    work: dict[str, float] = defaultdict(float)
    for job in jobs:
        for kind, seconds in job.stages.items():
            work[job.device_key if kind == "profile" else "hosts"] += seconds * job.rounds
    size: dict[str, int] = defaultdict(int)
    gaps: dict[str, list[tuple[float, float, int]]] = defaultdict(list)
    for index in range(machines):
        for part in machine_of(index):
            pool, width = ("hosts", part.slots) if isinstance(part, Host) else (part.key, 1)
            size[pool] += width
            gaps[pool] += [(left_s, back_s, width) for left_s, back_s in away[index]]
    found = {pool: drained_s(need_s, size[pool], gaps[pool]) for pool, need_s in work.items()}
    found["longest job"] = max(sum(job.stages.values()) * job.rounds for job in jobs)
    limit = max(found, key=lambda name: found[name])
    return found[limit], limit


def drained_s(work_s: float, size: int, gaps: Iterable[tuple[float, float, int]]) -> float:
    """When a pool has done its work at the earliest, less what is away at times."""
    changes = sorted([(s, -w) for s, _, w in gaps] + [(s, w) for _, s, w in gaps])
    at_s, width, left_s = 0.0, size, work_s
    for change_s, by in changes:
        if width > 0 and left_s <= width * (change_s - at_s):
            break
        left_s -= width * (change_s - at_s)
        at_s, width = change_s, width + by
    return at_s + left_s / width


class TimedSimulator(Simulator):
    """Notes how long the core thinks about every event."""

    def __init__(self, workload: Workload, resources: Iterable[Host | Device]) -> None:
        super().__init__(workload, resources, "load-aware", check=False, keep_log=False)
        self.decisions_ns: list[int] = []
        self.cpu_ns: list[int] = []
        handle = self.core.handle

        def timed(event: Event) -> list[Command]:
            # The clock of CPU time is a system call, so it is read outside of the other's interval.
            cpu_ns, start_ns = time.thread_time_ns(), time.perf_counter_ns()
            commands = handle(event)
            self.decisions_ns.append(time.perf_counter_ns() - start_ns)
            self.cpu_ns.append(time.thread_time_ns() - cpu_ns)
            return commands

        self.core.handle = timed  # type: ignore[method-assign]


def measure(count: int, machines: int, rounds: int, seed: int) -> dict[str, object]:
    jobs = jobs_of(count, rounds, seed)
    plain_s, _ = bound_s(jobs, machines, {index: [] for index in range(machines)})
    away = absences(machines, plain_s, seed)
    everything = [part for index in range(machines) for part in machine_of(index)]
    started = time.perf_counter()
    simulator = TimedSimulator(Workload(jobs=jobs, disturbances=disturbances(away)), everything)
    result = simulator.run()
    least_s, limit = bound_s(jobs, machines, away)
    decisions_us = sorted(ns / 1e3 for ns in simulator.decisions_ns)
    return {
        "jobs": count,
        "machines": machines,
        "devices": machines * DEVICES,
        "kinds": KINDS,
        "slots": machines * SLOTS,
        "absences": sum(map(len, away.values())),
        "finished": len(result.completed_s),
        "makespan_s": max(result.completed_s.values()),
        "bound_s": least_s,
        "limit": limit,
        "ratio": max(result.completed_s.values()) / least_s,
        "events": len(decisions_us),
        "decision_median_us": statistics.median(decisions_us),
        "decision_cpu_median_us": statistics.median(simulator.cpu_ns) / 1e3,
        "decision_p99_us": decisions_us[int(0.99 * len(decisions_us))],
        "wall_s": time.perf_counter() - started,
        "memory_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
        "machine": platform.machine(),
    }


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--jobs", type=int, default=10_000)
    parser.add_argument("--machines", type=int, default=200)
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, default=OUT)
    options = parser.parse_args()
    found = measure(options.jobs, options.machines, options.rounds, options.seed)
    options.out.write_text(json.dumps(found, indent=1) + "\n")
    print(json.dumps(found, indent=1))


if __name__ == "__main__":
    main()
