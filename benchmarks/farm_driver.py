"""What one driver carries: 1,000 mock devices on real agents, and what each trial costs the driver.

Usage: python benchmarks/farm_driver.py [--devices 1000] [--trials 500] [--out FILE]

Four nodes of Ray are simulated on this machine; each pretends to have a quarter of the devices and 400
slots. Stages are mock stages that take known times and need no core. Scheduling, store (SQLite),
agents and messages are real. The driver's CPU time is that of its process, all threads.
"""

import argparse
import json
import os
import platform
import resource
import tempfile
import time
from contextlib import closing
from pathlib import Path
from typing import Any

import tests_on_path  # noqa: F401
from support.engines.pretended import LENGTHS
from support.engines.simulated_cluster import SimulatedCluster
from support.engines.surveys import LARGE
from tuneloom.app.runs.executing.in_process import execute
from tuneloom.app.runs.settings import RunSettings
from tuneloom.app.runs.submitting import submit
from tuneloom.engine.machine import Fleet
from tuneloom.engine.ray.engine import RayEngine
from tuneloom.engine.ray.messages import AgentSpec, Node
from tuneloom.model import Budget, JobSpec
from tuneloom.store import open_store

OUT = Path(__file__).parent / "results" / "farm_driver.json"
MACHINES, KINDS, SLOTS, JOBS = 4, 20, 400, 40
LENGTHS_S = "build=0.5,profile=0.5"
"""What stages take: devices and slots could carry twice what is asked of the driver."""


def measure(devices: int, trials: int) -> dict[str, Any]:
    def spec(node: Node) -> AgentSpec:
        keys = tuple(f"kind-{n % KINDS}" for n in range(devices // MACHINES))
        return AgentSpec(
            machine=node.name,
            survey=LARGE,
            argument=(node.name, SLOTS, keys),
            environment={LENGTHS: LENGTHS_S},
            engine="support.engines.pretended:PretendedEngine",
        )

    cluster = SimulatedCluster(tuple(f"m{n}" for n in range(MACHINES)))
    with tempfile.TemporaryDirectory() as folder:
        place = str(Path(folder) / "store.db")
        engine = RayEngine(cluster.connect(), spec)
        try:
            engine.prepare()
            with closing(open_store(place)) as store:
                settings = RunSettings(store=place)
                run = submit(store, [spec_of(n, trials) for n in range(JOBS)], settings).id
                cpu_s, wall_s = time.process_time(), time.perf_counter()
                outcome = execute(store, run, engine, Fleet(offers=engine.offers), settings)
                cpu_s, wall_s = time.process_time() - cpu_s, time.perf_counter() - wall_s
                kept = sum(len(store.trials(job.id)) for job in outcome.jobs)
                stages = len(store.spans(run))
        finally:
            engine.close()
            cluster.close()
    return {
        "devices": devices,
        "jobs": JOBS,
        "trials": kept,
        "wall_s": wall_s,
        "trials_per_s": kept / wall_s,
        "stages_per_s": stages / wall_s,
        "driver_cpu_ms_per_trial": 1e3 * cpu_s / kept,
        "trials_per_cpu_s": kept / cpu_s,
        "driver_memory_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
        "load": os.getloadavg()[0],
        "machine": platform.machine(),
    }


def spec_of(number: int, trials: int) -> JobSpec:
    return JobSpec(
        name=f"job-{number}",
        model="mock:tasks=4,size=4096",
        tuner="mock",
        device_key=f"kind-{number % KINDS}",
        budget=Budget(trials=trials),
        batch=16,
        seed=number,
    )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--devices", type=int, default=1000)
    parser.add_argument("--trials", type=int, default=500, help="of each job")
    parser.add_argument("--out", type=Path, default=OUT)
    options = parser.parse_args()
    found = measure(options.devices, options.trials)
    options.out.write_text(json.dumps(found, indent=1) + "\n")
    print(json.dumps(found, indent=1))


if __name__ == "__main__":
    main()
