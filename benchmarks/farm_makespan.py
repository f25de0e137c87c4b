"""Eight jobs on three machines: how near the makespan comes to its bound, and what a lost machine costs.

Usage: python benchmarks/farm_makespan.py [--trials 12] [--out FILE]

Three nodes of Ray are simulated on this machine; each has a host with 4 slots and a device of each
of two keys. Jobs are mock jobs whose stages take known times and need no core; scheduling, store,
agents and messages are real. In the second run one machine is killed after a third of the time, and a
new one joins soon after. The bound: no pool of resources can do its work sooner than its capacity
allows, counted while it was there, after the shortest way to it.
"""

import argparse
import json
import platform
import tempfile
import threading
from collections.abc import Iterable
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
from tuneloom.app.runs.view import RunView
from tuneloom.engine.machine import Fleet
from tuneloom.engine.ray.engine import RayEngine
from tuneloom.engine.ray.messages import AgentSpec, Node
from tuneloom.model import Budget, JobSpec
from tuneloom.store import open_store

OUT = Path(__file__).parent / "results" / "farm_makespan.json"
STAGES = {"select": 0.6, "build": 4.0, "profile": 7.0, "update": 0.3}
"""Seconds; both runs together take about five minutes."""

KEYS = ("oak", "elm")
SLOTS, JOBS, BATCH = 4, 8, 3


def spec(node: Node) -> AgentSpec:
    lengths = ",".join(f"{name}={seconds}" for name, seconds in STAGES.items())
    return AgentSpec(
        machine=node.name,
        survey=LARGE,
        argument=(node.name, SLOTS, KEYS),
        environment={LENGTHS: lengths},
        engine="support.engines.pretended:PretendedEngine",
    )


def spec_of(number: int, trials: int) -> JobSpec:
    return JobSpec(
        name=f"job-{number}",
        model="mock:tasks=2,size=4096",
        tuner="mock",
        device_key=KEYS[number % len(KEYS)],
        budget=Budget(trials=trials),
        batch=BATCH,
        seed=number,
    )


def drained_s(work_s: float, gaps: Iterable[tuple[float, int]]) -> float:
    """When a pool has done its work at the earliest; `gaps` says when its width changes, and by how much."""
    at_s, width, left_s = 0.0, 0, work_s
    for change_s, by in sorted(gaps):
        if width > 0 and left_s <= width * (change_s - at_s):
            break
        left_s -= width * (change_s - at_s)
        at_s, width = change_s, width + by
    return at_s + left_s / width


def bound_s(trials: int, resources: list[dict[str, Any]]) -> float:
    """What no schedule of these jobs can beat on what was there when."""
    pools: dict[str, list[tuple[float, int]]] = {}
    for entry in resources:
        pool, width = entry.get("device_key", "hosts"), int(entry["slots"])
        changes = pools.setdefault(pool, [])
        changes.append((float(entry["joined_s"]), width))
        for left_s, back_s in entry["away"]:
            changes.append((left_s, -width))
            if back_s is not None:
                changes.append((back_s, width))
    rounds = JOBS * trials / BATCH
    work = {"hosts": JOBS * trials * STAGES["build"] + rounds * (STAGES["select"] + STAGES["update"])}
    work |= {key: JOBS / len(KEYS) * trials * STAGES["profile"] for key in KEYS}
    first_s = STAGES["select"] + STAGES["build"]  # before that no device has anything to do
    times = [
        drained_s(
            need_s, [(s + (first_s if pool != "hosts" and s < first_s else 0.0), w) for s, w in pools[pool]]
        )
        for pool, need_s in work.items()
    ]
    return max(times)


def measure(cluster: SimulatedCluster, trials: int, *, kill: bool) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as folder:
        place = str(Path(folder) / "store.db")
        engine = RayEngine(cluster.connect(), spec)
        try:
            engine.prepare()
            with closing(open_store(place)) as store:
                settings = RunSettings(store=place)
                run = submit(store, [spec_of(n, trials) for n in range(JOBS)], settings).id
                third_s = JOBS / len(KEYS) * trials * STAGES["profile"] / 3 / 3
                trouble = Trouble(cluster, third_s) if kill else None
                outcome = execute(store, run, engine, Fleet(offers=engine.offers), settings, trouble)
                spans, resources = store.spans(run), store.notes(run)["resources"]
                kept = [len(store.trials(job.id)) for job in outcome.jobs]
        finally:
            engine.close()
    makespan_s = max(span.end_s for span in spans)
    least_s = bound_s(trials, resources)
    return {
        "case": "one machine killed, one joins" if kill else "three machines",
        "jobs": JOBS,
        "stages_s": STAGES,
        "trials": sum(kept),
        "all_trials": all(count == trials for count in kept),
        "failed": [str(outcome.failure)] if outcome.failure else [],
        "makespan_s": makespan_s,
        "bound_s": least_s,
        "ratio": makespan_s / least_s,
        "came_and_went": {
            str(entry["name"]): [entry["joined_s"], entry["away"]]
            for entry in resources
            if entry["away"] or entry["joined_s"] > 1.0
        },
        "machine": platform.machine(),
    }


class Trouble:
    """Kills a machine after some time, and lets another join."""

    every_s = 0.25

    def __init__(self, cluster: SimulatedCluster, after_s: float) -> None:
        self._cluster, self._after_s, self._done = cluster, after_s, False

    def show(self, view: RunView) -> None:
        if not self._done and view.at_s > self._after_s:
            self._done = True
            threading.Thread(target=self._cluster.kill, args=("c",), daemon=True).start()
            self._cluster.add_apart("d")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--trials", type=int, default=12, help="of each job")
    parser.add_argument("--out", type=Path, default=OUT)
    options = parser.parse_args()
    cluster = SimulatedCluster(("a", "b", "c"))
    found: list[dict[str, Any]] = []
    try:
        for kill in (False, True):
            found.append(measure(cluster, options.trials, kill=kill))
            options.out.write_text(json.dumps(found, indent=1) + "\n")
            print(json.dumps(found[-1], indent=1), flush=True)
    finally:
        cluster.close()


if __name__ == "__main__":
    main()
