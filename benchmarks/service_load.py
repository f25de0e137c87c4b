"""How fast a server answers while it tunes: submitting, listing, and many event streams at once.

    python benchmarks/service_load.py [--submissions 200] [--jobs 10000] [--streams 200] [--part NAME]

Parts: `submit` (SQLite, an executor at work), `list` (PostgreSQL, 50 of many jobs), `streams` (trials a
second of a job with and without listeners, in turn). Writes benchmarks/results/service_load.json, one row
per part.
"""

import argparse
import json
import selectors
import socket
import sys
import threading
import time
from collections import Counter
from contextlib import closing
from pathlib import Path
from statistics import median
from typing import Any

import httpx

from serving import Team, team
from tuneloom.app.requests.job_specs import job_spec
from tuneloom.store import Store, Submission

RESULTS = Path(__file__).parent / "results" / "service_load.json"
ENDLESS = "mock:tasks=2,size=100000,build=0.005,profile=0.01"
SMALL = "mock:tasks=1,size=16"
ROUNDS, ROUND_S = 5, 14.0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--submissions", type=int, default=200)
    parser.add_argument("--jobs", type=int, default=10_000)
    parser.add_argument("--streams", type=int, default=200)
    parser.add_argument("--part", choices=["submit", "list", "streams"])
    options = parser.parse_args()
    for name, measure in (("submit", submit), ("list", list_jobs), ("streams", streams)):
        if options.part in (None, name):
            keep({"part": name, **measure(options)})
    print(RESULTS.read_text())
    return 0


def keep(row: dict[str, Any]) -> None:
    """Replace the row of the same part."""
    old = json.loads(RESULTS.read_text()) if RESULTS.exists() else []
    rows = [other for other in old if other["part"] != row["part"]] + [row]
    RESULTS.parent.mkdir(exist_ok=True)
    RESULTS.write_text(json.dumps(sorted(rows, key=lambda each: str(each["part"])), indent=2) + "\n")


def submit(options: argparse.Namespace) -> dict[str, Any]:
    with team() as made:
        made.serve()
        made.execute()
        with made.client() as client:
            begin_tuning(made, client.submit(ENDLESS, trials=100_000, batch=4).id)
            times = [timed(lambda: client.submit(SMALL, trials=1)) for _ in range(options.submissions)]
    return {"count": len(times), **quantiles(times)}


def list_jobs(options: argparse.Namespace) -> dict[str, Any]:
    with team("postgres") as made:
        token = made.token("weavers")
        with closing(made.open()) as store:
            first, _ = store.submit_job(submission(0), {})
        multiply(made.place, first.id, options.jobs - 1)
        made.serve()
        headers = {"Authorization": f"Bearer {token}"}
        with httpx.Client(base_url=made.url, headers=headers, timeout=60) as http:
            times = [timed(lambda: http.get("/api/v1/jobs?limit=50").raise_for_status()) for _ in range(50)]
    return {"count": options.jobs, **quantiles(times)}


def multiply(place: str, run: str, count: int) -> None:
    """Copy a submitted job within the database: submitting thousands one by one takes minutes."""
    import psycopg

    names = {"runs": "id", "jobs": "id run", "submissions": "run request"}
    counted = {"runs": "number", "jobs": "", "submissions": "number"}
    asked = "SELECT column_name FROM information_schema.columns WHERE table_name = %s"
    with psycopg.connect(place) as connection:
        for table, changed in names.items():
            found = [row[0] for row in connection.execute(asked, [table])]
            columns = [name for name in found if name != counted[table]]
            values = [f"t.{name} || '-' || g" if name in changed.split() else f"t.{name}" for name in columns]
            mine = "run" if "run" in columns else "id"
            connection.execute(
                f"INSERT INTO {table} ({', '.join(columns)}) SELECT {', '.join(values)} "
                f"FROM {table} t, generate_series(1, {count}) g WHERE t.{mine} = '{run}'"
            )


def streams(options: argparse.Namespace) -> dict[str, Any]:
    with team() as made:
        made.serve()
        made.execute()
        token = made.token("weavers")
        with made.client() as client, closing(made.open()) as store:
            job = client.submit(ENDLESS, trials=1_000_000, batch=4).id
            begin_tuning(made, job)
            alone, watched = [], []
            for _ in range(ROUNDS):
                alone.append(pace(store, job))
                with Listeners(made, token, job, options.streams):
                    watched.append(pace(store, job))
    return {"count": options.streams, "alone": median(alone), "watched": median(watched)} | {
        "ratio": median(watched) / median(alone)
    }


class Listeners:
    """Event streams of a job, read by one thread that costs next to nothing: it is the server that counts."""

    def __init__(self, made: Team, token: str, job: str, count: int) -> None:
        head = f"GET /api/v1/jobs/{job}/events HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {token}\r\n\r\n"
        self._head, self._port, self._count = head.encode(), made.port, count
        self._heard: Counter[int] = Counter()
        self._selector = selectors.DefaultSelector()
        self._thread = threading.Thread(target=self._listen, daemon=True)
        self._ending = False

    def __enter__(self) -> "Listeners":
        for _ in range(self._count):
            connection = socket.create_connection(("127.0.0.1", self._port), timeout=60)
            connection.sendall(self._head)
            self._selector.register(connection, selectors.EVENT_READ)
        self._thread.start()
        while len(self._heard) < self._count:
            time.sleep(0.1)
        self._heard.clear()
        return self

    def __exit__(self, *_: object) -> None:
        self._ending = True
        self._thread.join(10)
        for key in list(self._selector.get_map().values()):
            key.fileobj.close()  # type: ignore[union-attr]
        if len(self._heard) < self._count:
            raise RuntimeError(f"only {len(self._heard)} of {self._count} streams told anything")

    def _listen(self) -> None:
        while not self._ending:
            for key, _ in self._selector.select(0.5):
                self._heard[key.fd] += len(key.fileobj.recv(1 << 20))  # type: ignore[union-attr]


def begin_tuning(made: Team, job: str) -> None:
    with closing(made.open()) as store:
        while store.trial_count(f"{job}.1") < 5:
            time.sleep(0.2)


def pace(store: Store, job: str) -> float:
    """Trials a second over some seconds."""
    before, began_s = store.trial_count(f"{job}.1"), time.monotonic()
    time.sleep(ROUND_S)
    return (store.trial_count(f"{job}.1") - before) / (time.monotonic() - began_s)


def timed(what: Any) -> float:
    began_s = time.perf_counter()
    what()
    return (time.perf_counter() - began_s) * 1e3


def quantiles(times: list[float]) -> dict[str, float]:
    ordered = sorted(times)
    return {"median_ms": median(ordered), "p99_ms": ordered[min(len(ordered) - 1, int(0.99 * len(ordered)))]}


def submission(number: int) -> Submission:
    spec = job_spec({"name": f"job-{number}", "model": SMALL, "trials": 8})
    return Submission(
        tenant="weavers",
        token="t",
        name=spec.name,
        model=SMALL,
        spec=spec.to_json(),
        trials=1,
        request=str(number),
    )


if __name__ == "__main__":
    sys.exit(main())
