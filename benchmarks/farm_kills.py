"""Kill agents, workers, machines and the driver of a farm at random moments; count trials lost and doubled.

Usage: python benchmarks/farm_kills.py [--kills 200] [--seed 1] [--model mock:…] [--out FILE]

Three nodes of Ray are simulated on this machine. A driver tunes on them in a process of its own while
somebody kills: an agent, a worker, a whole machine (which joins again at once), or the driver itself
(which is resumed). A worker that is killed costs its candidate one failed trial, as a crash does;
nothing else may cost one. When a run ends the next one begins, until there were enough kills.
"""

import argparse
import json
import os
import platform
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import psutil

from tuneloom.engine.ray.simulated import SimulatedCluster
from tuneloom.errors import StoreError
from tuneloom.store import JobStatus, RunStatus, open_existing

OUT = Path(__file__).parent / "results" / "farm_kills.json"
KINDS = {"agent": 0.52, "worker": 0.36, "machine": 0.07, "driver": 0.05}
AGENT, NURSERY = "AgentActor", "tuneloom.engine.nursery"
MOCK = "mock:tasks=3,size=100000,build=0.05,profile=0.05"


class Farm:
    """The cluster, its driver, and who can be killed."""

    def __init__(self, folder: Path, model: str, trials: int) -> None:
        self.cluster = SimulatedCluster(("a", "b", "c"))
        self.store = str(folder / "store.db")
        self._model, self._trials = model, trials
        self._file = folder / "farm.toml"
        self._file.write_text(f'address = "{self.cluster.address}"\n')
        self._errors = (folder / "errors.txt").open("w")
        self.driver = self._begin()
        self.drivers = 1

    def _begin(self) -> "subprocess.Popen[bytes]":
        words = [
            "tune",
            self._model,
            "--trials",
            str(self._trials),
            "--batch",
            "8",
            "--farm",
            str(self._file),
        ]
        return self._start(words)

    def _start(self, words: list[str]) -> "subprocess.Popen[bytes]":
        command = [sys.executable, "-m", "tuneloom.cli.main", *words, "--store", self.store, "--quiet"]
        return subprocess.Popen(command, stdout=self._errors, stderr=self._errors)

    def look_after_driver(self) -> None:
        """Resume a run whose driver was killed; begin the next one when one is over."""
        if self.driver.poll() is None:
            return
        self.drivers += 1
        unfinished = self._unfinished()
        self.driver = self._start(["resume", unfinished]) if unfinished else self._begin()

    def finish(self) -> None:
        """Let the last run come to its end."""
        while self.driver.poll() is None or self._unfinished():
            self.look_after_driver()
            time.sleep(1.0)

    def _unfinished(self) -> str:
        with suppress(StoreError), closing(open_existing(self.store)) as store:
            runs = [run.id for run in store.runs() if run.status is not RunStatus.FINISHED]
            return runs[0] if runs else ""
        return ""

    @property
    def works(self) -> bool:
        """Whether workers are at work, so that there is something to kill."""
        return bool(self.victims("worker"))

    def victims(self, kind: str) -> list[psutil.Process]:
        mine = psutil.Process().children(recursive=True)  # Ray's processes are children of this one
        agents = [p for p in mine if AGENT in _title(p)]
        if kind == "agent":
            return agents
        nurseries = [c for agent in agents for c in _children(agent) if NURSERY in _title(c)]
        return [worker for nursery in nurseries for worker in _children(nursery)]

    def kill(self, kind: str, chance: random.Random) -> bool:
        if kind == "driver":
            self.driver.kill()
            self.driver.wait()
            return True
        if kind == "machine":
            name = chance.choice(("b", "c"))
            self.cluster.kill(name)
            self.cluster.add(name)
            return True
        found = self.victims(kind)
        if not found:
            return False
        with suppress(psutil.Error):
            os.kill(chance.choice(found).pid, signal.SIGKILL)
            return True
        return False

    def close(self) -> None:
        self.driver.kill()
        self.driver.wait()
        self.cluster.close()


def _title(process: psutil.Process) -> str:
    with suppress(psutil.Error):
        return " ".join(process.cmdline())
    return ""


def _children(process: psutil.Process) -> list[psutil.Process]:
    with suppress(psutil.Error):
        return list(process.children())
    return []


def measure(kills: int, seed: int, model: str, trials: int) -> dict[str, Any]:
    chance, done = random.Random(seed), Counter[str]()
    started = time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        farm = Farm(Path(folder), model, trials)
        try:
            while sum(done.values()) < kills:
                farm.look_after_driver()
                time.sleep(chance.uniform(0.1, 1.0))
                kind = chance.choices(list(KINDS), list(KINDS.values()))[0]
                if farm.works and farm.kill(kind, chance):
                    done[kind] += 1
            farm.finish()
            found = judged(farm.store, trials)
        finally:
            farm.close()
    took_s = round(time.perf_counter() - started, 1)
    machine = platform.machine()
    return {
        "model": model,
        "kills": dict(done),
        "drivers": farm.drivers,
        **found,
        "seconds": took_s,
        "machine": machine,
    }


def judged(place: str, trials: int) -> dict[str, Any]:
    """What is in the store after all."""
    lost = doubled = total = 0
    failures: Counter[str] = Counter()
    with closing(open_existing(place)) as store:
        runs = [run for run in store.runs() if run.command.startswith("tuneloom tune") or store.jobs(run.id)]
        jobs = [job for run in runs for job in store.jobs(run.id)]
        for job in jobs:
            records = store.trials(job.id)
            keys = Counter((record.task_key, record.trial.candidate.key) for record in records)
            total += len(records)
            doubled += sum(count - 1 for count in keys.values())
            lost += max(0, trials - len(records))
            failures.update(str(r.trial.outcome.kind) for r in records if r.trial.seconds is None)  # type: ignore[union-attr]
        ended = sum(job.status is JobStatus.FINISHED for job in jobs)
    return {
        "runs": len(runs),
        "jobs_finished": ended,
        "jobs_not_finished": len(jobs) - ended,
        "trials": total,
        "lost": lost,
        "doubled": doubled,
        "failures": dict(failures),
    }


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--model", default=MOCK)
    parser.add_argument("--trials", type=int, default=300)
    parser.add_argument("--out", type=Path, default=OUT)
    options = parser.parse_args()
    found = measure(options.kills, options.seed, options.model, options.trials)
    options.out.write_text(json.dumps(found, indent=1) + "\n")
    print(json.dumps(found, indent=1))
    return 1 if found["lost"] or found["doubled"] or found["jobs_not_finished"] else 0


if __name__ == "__main__":
    sys.exit(main())
