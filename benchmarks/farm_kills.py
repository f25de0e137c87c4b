"""Kill agents, workers, machines and the driver of a farm at random moments; count trials lost and doubled.

    python benchmarks/farm_kills.py [--kills 50] [--seed 1] [--model mock] [--trials 300] [--out FILE]
    python benchmarks/farm_kills.py --fresh …            (forget the pieces that the file has)

Three nodes of Ray are simulated on this machine. A driver tunes on them in a process of its own while
somebody kills: an agent, a worker, a whole machine (which joins again at once), or the driver itself
(which is resumed). Most kills wait for some trials after the one before, so that the farm can come
back; every fifth comes at once, to hit what is just coming back. A worker that is killed costs its
candidate one failed trial, as a crash does; nothing else may cost one. When a run ends the next one
begins, until there were enough kills; the last run is carried to its end. Every start of this program
adds one piece to the results. Exits with 1 if anything was lost, doubled or not ended.
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

import tests_on_path  # noqa: F401
from support.engines.simulated_cluster import SimulatedCluster
from support.models.onnx_files import write_network
from tuneloom.errors import StoreError
from tuneloom.store import JobStatus, RunStatus, open_existing

OUT = Path(__file__).parent / "results" / "farm_kills.json"
KINDS = {"agent": 0.46, "worker": 0.36, "machine": 0.09, "driver": 0.09}
AGENT, NURSERY = "AgentActor", "tuneloom.engine.nursery"
MOCK, NETWORK = "mock", "network"
MOCK_MODEL = "mock:tasks=3,size=100000,build=0.05,profile=0.05"
NAMES = ("a", "b", "c")
MOST_TRIALS_BETWEEN = 16
AT_ONCE, AT_ONCE_S = 0.2, 2.0
STUCK_S = 240.0
GLANCE_S = 0.2


class Stuck(Exception):  # noqa: N818 - the name is the message
    """Nothing has come out of the farm for minutes."""


class Driver:
    """The process that tunes; a run whose driver was killed is resumed, after its end the next begins."""

    def __init__(self, folder: Path, address: str, model: str, trials: int) -> None:
        self.store = str(folder / "store.db")
        self.started = self.failed = 0
        self._farm = folder / "farm.toml"
        self._farm.write_text(f'address = "{address}"\n')
        self._model, self._trials = model, trials
        self._log = folder / "driver.txt"
        self._process: subprocess.Popen[bytes] | None = None

    def look_after(self, *, begin: bool = True) -> bool:
        """See to it that one is at work; False if nothing is left to do and nothing should begin."""
        if self._process is not None and self._process.poll() is None:
            return True
        if self._process is not None and self._process.returncode not in (0, -signal.SIGKILL):
            self.failed += 1
        unfinished = self._unfinished()
        if not unfinished and not begin:
            return False
        self._process = self._start(["resume", unfinished] if unfinished else self._tune())
        self.started += 1
        return True

    def kill(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()

    def trials(self) -> int:
        """How many are kept so far, of all runs."""
        with suppress(StoreError), closing(open_existing(self.store)) as store:
            return sum(store.trial_count(job.id) for run in store.runs() for job in store.jobs(run.id))
        return 0

    def said(self) -> str:
        return self._log.read_text()[-2000:]

    def _tune(self) -> list[str]:
        words = ["tune", self._model, "--trials", str(self._trials), "--batch", "8"]
        return [*words, "--reuse", "off", "--farm", str(self._farm)]

    def _start(self, words: list[str]) -> "subprocess.Popen[bytes]":
        command = [sys.executable, "-m", "tuneloom.cli.main", *words, "--store", self.store, "--quiet"]
        with self._log.open("a") as log:
            return subprocess.Popen(command, stdout=log, stderr=log)

    def _unfinished(self) -> str:
        with suppress(StoreError), closing(open_existing(self.store)) as store:
            runs = [run.id for run in store.runs() if run.status is not RunStatus.FINISHED]
            return runs[0] if runs else ""
        return ""


class Patience:
    """Gives up when there was no progress for minutes, however long everything takes."""

    def __init__(self, driver: Driver) -> None:
        self._driver = driver
        self._seen: object = None
        self._since_s = time.monotonic()
        self.longest_s = 0.0

    def glance(self) -> int:
        """Wait a moment; the trials that are kept by then."""
        time.sleep(GLANCE_S)
        trials, now_s = self._driver.trials(), time.monotonic()
        if trials != self._seen:
            self._seen, self._since_s = trials, now_s
        waited_s = now_s - self._since_s
        self.longest_s = max(self.longest_s, waited_s)
        if waited_s > STUCK_S:
            raise Stuck(f"no trial for {STUCK_S:g} s; the driver said: {self._driver.said()}")
        return trials


def victims(kind: str) -> list[psutil.Process]:
    """Agents or workers; Ray's processes are children of this one."""
    agents = [p for p in psutil.Process().children(recursive=True) if AGENT in _title(p)]
    if kind == "agent":
        return agents
    nurseries = [child for agent in agents for child in _children(agent) if NURSERY in _title(child)]
    return [worker for nursery in nurseries for worker in _children(nursery)]


def killed(kind: str, cluster: SimulatedCluster, driver: Driver, chance: random.Random) -> bool:
    """Kill something of a kind; False if there is nothing of it now."""
    if kind == "driver":
        driver.kill()
        return True
    if kind == "machine":
        name = chance.choice(NAMES[1:])  # the first one has Ray's head and the driver
        cluster.kill(name)
        cluster.add(name)
        return True
    found = victims(kind)
    if found:
        with suppress(ProcessLookupError):
            os.kill(chance.choice(found).pid, signal.SIGKILL)
            return True
    return False


def _title(process: psutil.Process) -> str:
    with suppress(psutil.Error):
        return " ".join(process.cmdline())
    return ""


def _children(process: psutil.Process) -> list[psutil.Process]:
    with suppress(psutil.Error):
        return list(process.children())
    return []


def wait_for_moment(driver: Driver, patience: Patience, chance: random.Random) -> None:
    """Until some trials are done, or only a little."""
    if chance.random() < AT_ONCE:
        time.sleep(chance.uniform(0.0, AT_ONCE_S))
        return
    enough = driver.trials() + chance.randint(1, MOST_TRIALS_BETWEEN)
    while patience.glance() < enough:
        driver.look_after()
    time.sleep(chance.uniform(0.0, GLANCE_S))


def measure(kills: int, seed: int, model: str, trials: int) -> dict[str, Any]:
    chance, done = random.Random(seed), Counter[str]()
    started = time.perf_counter()
    with tempfile.TemporaryDirectory(prefix="kills-") as name:
        folder = Path(name)
        os.environ["TUNELOOM_HOME"] = str(folder)
        cluster = SimulatedCluster(NAMES)
        driver = Driver(folder, cluster.address, _model(model, folder), trials)
        patience = Patience(driver)
        try:
            while done.total() < kills:
                driver.look_after()
                wait_for_moment(driver, patience, chance)
                kind = chance.choices(list(KINDS), list(KINDS.values()))[0]
                if killed(kind, cluster, driver, chance):
                    done[kind] += 1
                    print(f"{time.perf_counter() - started:6.1f} s: {kind}", file=sys.stderr, flush=True)
            while driver.look_after(begin=False):
                patience.glance()
            found = judged(driver.store, trials)
        finally:
            driver.kill()
            cluster.close()
    return {
        "model": model,
        "seed": seed,
        "kills": done.total(),
        **{f"killed_{kind}s": done[kind] for kind in KINDS},
        "drivers": driver.started,
        "drivers_that_failed": driver.failed,
        **found,
        "longest_without_trial_s": round(patience.longest_s, 1),
        "seconds": round(time.perf_counter() - started, 1),
        "machine": platform.machine(),
    }


def _model(name: str, folder: Path) -> str:
    if name == NETWORK:
        return str(write_network(folder / "network.onnx", channels=16, size=8))
    return MOCK_MODEL if name == MOCK else name


def judged(place: str, trials: int) -> dict[str, Any]:
    """What is in the store after all."""
    lost = doubled = too_many = total = 0
    failures: Counter[str] = Counter()
    with closing(open_existing(place)) as store:
        jobs = [job for run in store.runs() for job in store.jobs(run.id)]
        for job in jobs:
            records = store.trials(job.id)
            keys = Counter((record.task_key, record.trial.candidate.key) for record in records)
            total += len(records)
            doubled += sum(count - 1 for count in keys.values())
            lost += max(0, trials - len(records))
            too_many += max(0, len(records) - trials)
            failures.update(str(r.trial.outcome.kind) for r in records if r.trial.seconds is None)  # type: ignore[union-attr]
        ended = sum(job.status is JobStatus.FINISHED for job in jobs)
    return {
        "jobs": len(jobs),
        "jobs_not_finished": len(jobs) - ended,
        "trials": total,
        "lost": lost,
        "doubled": doubled,
        "too_many": too_many,
        "failures": dict(failures),
    }


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--kills", type=int, default=50)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--model", default=MOCK, help=f"{MOCK}, {NETWORK} (a small real one) or any model")
    parser.add_argument("--trials", type=int, default=300)
    parser.add_argument("--fresh", action="store_true", help="forget the pieces that the file has")
    parser.add_argument("--out", type=Path, default=OUT)
    options = parser.parse_args()
    found = measure(options.kills, options.seed, options.model, options.trials)
    known = json.loads(options.out.read_text()) if options.out.exists() and not options.fresh else []
    options.out.write_text(json.dumps([*known, found], indent=1) + "\n")
    print(json.dumps(found, indent=1))
    return 1 if any(found[key] for key in ("lost", "doubled", "too_many", "jobs_not_finished")) else 0


if __name__ == "__main__":
    sys.exit(main())
