"""Kill the server and executors of a service at random moments under load: is a job or a trial lost?

    python benchmarks/service_kills.py [--kills 200] [--database sqlite|postgres] [--seed 1]

Clients submit mock jobs all the while, each with an idempotency key, and try again when the server
does not answer. When all kills are done, everything that was accepted has to end. Writes
benchmarks/results/service_kills.json, one row per database, and exits with 1 if anything is lost,
doubled or stuck.
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
from typing import Any

from serving import Team, team
from tuneloom.client import Client
from tuneloom.errors import ServiceError
from tuneloom.store import JobStatus, RunStatus, Store

RESULTS = Path(__file__).parent / "results" / "service_kills.json"
MODEL = "mock:tasks=2,size=4000,build=0.001,profile=0.002"
TRIALS = 24
EXECUTORS = 2
PATIENCE_S = 300.0


class Submitter(threading.Thread):
    """Submits jobs, each until it was accepted."""

    def __init__(self, made: Team, token: str, pause_s: float) -> None:
        super().__init__(daemon=True)
        self._made, self._token, self._pause_s = made, token, pause_s
        self.accepted: dict[str, str] = {}
        self.tries = 0
        self.ending = threading.Event()

    def run(self) -> None:
        number = 0
        while not self.ending.is_set():
            key = f"key-{number}"
            if self._submitted(key):
                number += 1
            self.ending.wait(self._pause_s)

    def _submitted(self, key: str) -> bool:
        self.tries += 1
        with suppress(ServiceError), Client(self._made.url, self._token) as client:
            self.accepted[key] = client.submit(MODEL, key=key, trials=TRIALS, batch=4, name=key).id
            return True
        return False


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--kills", type=int, default=200)
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
    """Replace the row of the same database."""
    old = json.loads(RESULTS.read_text()) if RESULTS.exists() else []
    rows = [other for other in old if other["database"] != row["database"]] + [row]
    RESULTS.parent.mkdir(exist_ok=True)
    RESULTS.write_text(json.dumps(sorted(rows, key=lambda each: each["database"]), indent=2) + "\n")


def measure(made: Team, kills: int, chance: random.Random) -> dict[str, Any]:
    began_s = time.monotonic()
    token = made.token("weavers")
    server, executors = made.serve(), [made.execute() for _ in range(EXECUTORS)]
    submitter = Submitter(made, token, pause_s=0.4)
    submitter.start()
    killed: Counter[str] = Counter()
    for _ in range(kills):
        time.sleep(chance.uniform(0.02, 0.8))
        if chance.random() < 0.4:
            made.end(server)
            server = made.serve()
            killed["server"] += 1
        else:
            place = chance.randrange(EXECUTORS)
            made.end(executors[place])
            executors[place] = made.execute()
            killed["executor"] += 1
    submitter.ending.set()
    submitter.join()
    with closing(made.open()) as store:
        waited_s = wait(store)
        return {
            **judged(store, submitter),
            "killed": dict(killed),
            "tries": submitter.tries,
            "waited_s": waited_s,
            "seconds": time.monotonic() - began_s,
        }


def wait(store: Store) -> float:
    """Until everything has ended, or nothing will."""
    began_s = time.monotonic()
    while time.monotonic() - began_s < PATIENCE_S:
        if not set(store.job_counts()) - {"finished"}:
            break
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
