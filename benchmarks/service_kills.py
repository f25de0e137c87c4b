"""Kill the server and executors of a service at random moments under load: is a job or a trial lost?

    python benchmarks/service_kills.py [--kills 50] [--database sqlite|postgres] [--seed 1]

How long an executor takes from its start to its first trial is measured first, and the gaps between
kills are drawn so that a process lives some three times as long on average: shorter ones leave nobody
the time to do anything, longer ones kill rarely. Gaps are exponential, so many kills come while a
process still starts. Clients submit mock jobs all the while, each with an idempotency key, and try again
when the server does not answer. When all kills are done, everything that was accepted has to end; the
benchmark gives up only when nothing has moved for two minutes.

Writes benchmarks/results/service_kills.json, one row per database and seed, so that many kills can be
measured in pieces. Exits with 1 if anything is lost, doubled or stuck.
"""

import argparse
import json
import random
import sys
import threading
import time
from collections import Counter
from contextlib import closing, suppress
from pathlib import Path
from statistics import median
from typing import Any

from serving import Team, team
from tuneloom.client import Client
from tuneloom.errors import ServiceError
from tuneloom.store import JobStatus, RunStatus, Store

RESULTS = Path(__file__).parent / "results" / "service_kills.json"
MODEL = "mock:tasks=2,size=4000,build=0.01,profile=0.02"
TRIALS = 24
EXECUTORS = 2
PROCESSES = EXECUTORS + 1
LIVES = 3.0
STILL_S = 120.0
STARTS = 3
MOST_WAITING = 20


class Submitter(threading.Thread):
    """Submits jobs, each until it was accepted; waits while many are unfinished."""

    def __init__(self, made: Team, token: str) -> None:
        super().__init__(daemon=True)
        self._made, self._token = made, token
        self.accepted: dict[str, str] = {}
        self.tries = 0
        self.ending = threading.Event()

    def run(self) -> None:
        with closing(self._made.open()) as store:
            while not self.ending.wait(0.2):
                counts = store.job_counts()
                if sum(counts.values()) - counts.get("finished", 0) < MOST_WAITING:
                    self._submit(f"key-{len(self.accepted)}")

    def _submit(self, key: str) -> None:
        self.tries += 1
        with suppress(ServiceError), Client(self._made.url, self._token) as client:
            self.accepted[key] = client.submit(MODEL, key=key, trials=TRIALS, batch=4, name=key).id


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--kills", type=int, default=50)
    parser.add_argument("--database", choices=["sqlite", "postgres"], default="sqlite")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    with team(options.database) as made:
        result = measure(made, options.kills, random.Random(options.seed))
    row = {"database": options.database, "kills": options.kills, "seed": options.seed, **result}
    keep(row)
    print(json.dumps(row, indent=2))
    return 1 if result["lost"] or result["doubled"] or result["unended"] else 0


def keep(row: dict[str, Any]) -> None:
    """Replace the row of the same database and seed."""
    old = json.loads(RESULTS.read_text()) if RESULTS.exists() else []
    same = (row["database"], row["seed"])
    rows = [other for other in old if (other["database"], other["seed"]) != same] + [row]
    rows.sort(key=lambda each: (each["database"], each["seed"]))
    RESULTS.parent.mkdir(exist_ok=True)
    RESULTS.write_text(json.dumps(rows, indent=2) + "\n")


def measure(made: Team, kills: int, chance: random.Random) -> dict[str, Any]:
    began_s = time.monotonic()
    server = made.serve()
    start_s = median(first_trial_s(made) for _ in range(STARTS))
    executors = [made.execute() for _ in range(EXECUTORS)]
    submitter = Submitter(made, made.token("weavers"))
    submitter.start()
    killed: Counter[str] = Counter()
    for _ in range(kills):
        time.sleep(chance.expovariate(PROCESSES / (LIVES * start_s)))
        place = chance.randrange(PROCESSES)
        if place == EXECUTORS:
            made.end(server)
            server = made.serve()
        else:
            made.end(executors[place])
            executors[place] = made.execute()
        killed["server" if place == EXECUTORS else "executor"] += 1
    killing_s = time.monotonic() - began_s
    submitter.ending.set()
    submitter.join()
    with closing(made.open()) as store:
        ended = store.job_counts().get("finished", 0)
        waited_s = wait(store)
        return {
            **judged(store, submitter),
            "killed": dict(killed),
            "start_s": start_s,
            "ended_while_killing": ended,
            "tries": submitter.tries,
            "waited_s": waited_s,
            "seconds": killing_s + waited_s,
        }


def first_trial_s(made: Team) -> float:
    """How long an executor takes from its start until a trial of a waiting job is committed."""
    with closing(made.open()) as store, made.client("starters") as client:
        job = client.submit(MODEL, trials=1)
        began_s = time.monotonic()
        executor = made.execute()
        while not store.trial_count(f"{job.id}.1"):
            time.sleep(0.01)
        took_s = time.monotonic() - began_s
        job.wait()
    made.end(executor)
    return took_s


def wait(store: Store) -> float:
    """Until everything has ended, or nothing has moved for a long time."""
    began_s = moved_s = time.monotonic()
    seen = None
    while time.monotonic() - moved_s < STILL_S:
        counts = store.job_counts()
        if not set(counts) - {"finished"}:
            break
        now = (counts, store.outcome_counts())
        if now != seen:
            seen, moved_s = now, time.monotonic()
        time.sleep(0.5)
    return time.monotonic() - began_s


def judged(store: Store, submitter: Submitter) -> dict[str, Any]:
    jobs = store.submitted_jobs("weavers", limit=10**6)
    known = {job.id for job in jobs}
    names = Counter(job.name for job in jobs)
    lost = sum(job not in known for job in submitter.accepted.values())
    trials = doubled = 0
    for job in jobs:
        made = [(record.task_key, record.trial.candidate.key) for record in store.trials(job.job)]
        trials += len(made)
        doubled += len(made) - len(set(made))
        if job.status is JobStatus.FINISHED:
            lost += max(0, TRIALS - len(made))
            doubled += max(0, len(made) - TRIALS)
    return {
        "jobs": len(jobs),
        "trials": trials,
        "lost": lost,
        "doubled": doubled + sum(count - 1 for count in names.values()),
        "unended": sum(store.run(job.id).status is not RunStatus.FINISHED for job in jobs),
    }


if __name__ == "__main__":
    sys.exit(main())
