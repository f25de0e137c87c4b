"""Do tenants get device time by their weights, however many jobs each has?

    python benchmarks/service_shares.py [--jobs 100] [--tenants 10] [--seconds 420] [--executors 1]

Real executors carry out mock jobs whose stages sleep, so that the device is what everybody waits for and
two cores are enough. All jobs outlast the measurement; how many a tenant has is unrelated to its weight.
It begins when every tenant has had the device, and counts what executors told the store that they let
tenants use. Writes a row to benchmarks/results/service_shares.json and exits with 1 if a share is off by
more than 5 %.
"""

import argparse
import json
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from serving import ROOM, Team, team
from tuneloom.app.requests.job_specs import job_spec
from tuneloom.store import Store, Submission

RESULTS = Path(__file__).parent / "results" / "service_shares.json"
MOST = 0.05
MODEL = "mock:tasks=1,size=20000,profile=0.15"
TRIALS = 19_000
BATCH = 2
FIRST_S = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Tenant:
    """Who wants how much, and has a right to how much."""

    name: str
    weight: float
    jobs: int


def tenants_of(count: int, jobs: int) -> list[Tenant]:
    """Tenants of weights 1 to 4 in turn, with a few jobs up to about twice the mean, last to first."""
    parts = [2 + number for number in reversed(range(count))]
    numbers = [max(1, jobs * part // sum(parts)) for part in parts]
    numbers[0] += jobs - sum(numbers)
    weights = [1.0 + number % 4 for number in range(count)]
    return [Tenant(name=f"tenant-{n}", weight=weights[n], jobs=own) for n, own in enumerate(numbers)]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--jobs", type=int, default=100)
    parser.add_argument("--tenants", type=int, default=10)
    parser.add_argument("--seconds", type=float, default=420)
    parser.add_argument("--executors", type=int, default=1)
    options = parser.parse_args()
    with team() as made:
        row = measure(made, tenants_of(options.tenants, options.jobs), options)
    return told([row])


def told(rows: Sequence[dict[str, Any]]) -> int:
    """Put rows in the place of those of the same kind; the exit code says whether all shares were right."""
    for row in rows:
        print(json.dumps(row, indent=2))
    old = json.loads(RESULTS.read_text()) if RESULTS.exists() else []
    new = {(row["stages"], row["executors"]) for row in rows}
    kept = [row for row in old if (row["stages"], row["executors"]) not in new]
    RESULTS.parent.mkdir(exist_ok=True)
    ordered = sorted([*kept, *rows], key=lambda row: (row["stages"], row["executors"]))
    RESULTS.write_text(json.dumps(ordered, indent=2) + "\n")
    return 1 if any(row["worst"] > MOST for row in rows) else 0


def measure(made: Team, tenants: Sequence[Tenant], options: argparse.Namespace) -> dict[str, Any]:
    with closing(made.open()) as store:
        for tenant in tenants:
            store.add_tenant(tenant.name, replace(ROOM, weight=tenant.weight))
            for number in range(tenant.jobs):
                store.submit_job(submission(tenant.name, number), {})
        for _ in range(options.executors):
            made.execute()
        while min(used(store, tenants).values()) < FIRST_S:
            time.sleep(0.5)
        before, began_s = used(store, tenants), time.monotonic()
        time.sleep(options.seconds)
        after, seconds = used(store, tenants), time.monotonic() - began_s
    spent = {name: after[name] - before[name] for name in after}
    return {
        "stages": "real",
        "executors": options.executors,
        "jobs": options.jobs,
        "seconds": seconds,
        "utilisation": sum(spent.values()) / (seconds * options.executors),
        **judged(tenants, spent),
    }


def used(store: Store, tenants: Sequence[Tenant]) -> dict[str, float]:
    """The device time of each tenant so far."""
    found = dict.fromkeys((tenant.name for tenant in tenants), 0.0)
    for (name, _), seconds in store.add_use({}).items():
        found[name] += seconds
    return found


def submission(tenant: str, number: int) -> Submission:
    spec = job_spec({"name": f"job-{number}", "model": MODEL, "trials": TRIALS, "batch": BATCH})
    return Submission(
        tenant=tenant,
        token="t",
        name=spec.name,
        model=MODEL,
        spec=spec.to_json(),
        trials=1,
        request=f"{tenant}-{number}",
    )


def judged(tenants: Sequence[Tenant], spent: Mapping[str, float]) -> dict[str, Any]:
    """How far each tenant is from what its weight gives it."""
    total, weight = sum(spent.values()), sum(tenant.weight for tenant in tenants)
    rows: list[dict[str, Any]] = [
        {
            "tenant": tenant.name,
            "weight": tenant.weight,
            "jobs": tenant.jobs,
            "share": spent[tenant.name] / total,
            "of_its_weight": spent[tenant.name] / total * weight / tenant.weight,
        }
        for tenant in tenants
    ]
    return {"worst": max(abs(row["of_its_weight"] - 1) for row in rows), "device_s": total, "tenants": rows}


if __name__ == "__main__":
    sys.exit(main())
