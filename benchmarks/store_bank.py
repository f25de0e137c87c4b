"""How long the questions to a bank of many records take.

    python benchmarks/store_bank.py [--records 100000]

Writes benchmarks/results/store_bank.json: medians in milliseconds of wall time, over SQLite on
disk, with the load of the machine beside them.
"""

import argparse
import json
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from tuneloom.model import Candidate, Failure, FailureKind, Measurement, Task, Trial
from tuneloom.store import Provenance, Store, open_store

RESULTS = Path(__file__).parent / "results" / "store_bank.json"
CLASSES, WORKLOADS_PER_CLASS = 20, 10
HERE = Provenance(family="llvm", target="llvm -mcpu=native", device_key="cpu")
TRACE = json.dumps([["SampleSplit", index * 7919 % 64, [index % 8, 1 << index % 6]] for index in range(120)])


def trial(number: int) -> Trial:
    """Every fifth record is a failure; the times are spread over two orders of magnitude."""
    candidate = Candidate(key=f"c{number}", configuration=f"{TRACE}{number}")
    if number % 5 == 0:
        return Trial(candidate=candidate, outcome=Failure(kind=FailureKind.BUILD_ERROR, message="no"))
    seconds = 1e-4 * (1 + number * 7919 % 9973 / 100)
    return Trial(candidate=candidate, outcome=Measurement(seconds=(seconds, seconds * 1.01)))


def fill(store: Store, records: int) -> str:
    """Spread the records over all workloads; returns the job."""
    job = store.add_job(store.create_run("benchmark").id, "bank").id
    each = records // (CLASSES * WORKLOADS_PER_CLASS)
    tasks = [
        Task(key=f"{group}-{member}", name="kernel", kernel_class=f"class{group}")
        for group in range(CLASSES)
        for member in range(WORKLOADS_PER_CLASS)
    ]
    store.add_tasks(job, tasks, family=HERE.family, target=HERE.target)
    for place, task in enumerate(tasks):
        store.add_trials(job, task.key, [trial(place * each + number) for number in range(each)], HERE)
    return job


def median_ms(question: Callable[[], object], times: int = 51) -> float:
    """The median time of asking, in milliseconds."""
    taken = []
    for _ in range(times):
        start = time.perf_counter()
        question()
        taken.append((time.perf_counter() - start) * 1000)
    return round(statistics.median(taken), 3)


def measure(store: Store, job: str) -> dict[str, float]:
    """All questions, and one durable trial."""
    numbers = iter(range(10**9, 2 * 10**9))
    return {
        "best 10 of a workload": median_ms(lambda: store.workload_trials("7-3", "llvm", 10)),
        "3 donors of each of 10 workloads": median_ms(lambda: store.donors("class7", "llvm", 3)),
        "a class nobody has": median_ms(lambda: store.donors("other", "llvm", 10)),
        "count by class and family": median_ms(store.bank, times=5),
        "commit one trial": median_ms(lambda: store.add_trial(job, "7-3", trial(next(numbers)), HERE)),
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--records", type=int, default=100_000)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "store.db"
        store = open_store(path)
        start = time.perf_counter()
        job = fill(store, options.records)
        filled, filled_cpu = time.perf_counter() - start, time.process_time()
        answers = measure(store, job)
        size = path.stat().st_size / 2**20
        store.close()
    result = {
        "records": options.records,
        "load_average": round(os.getloadavg()[0], 1),
        "fill_s": round(filled, 1),
        "fill_cpu_s": round(filled_cpu, 1),
        "file_mib": round(size, 1),
        "ms": answers,
    }
    RESULTS.parent.mkdir(exist_ok=True)
    RESULTS.write_text(json.dumps(result, indent=2) + "\n")
    print(json.dumps(result, indent=2))
    return 0


if __name__ == "__main__":
    sys.exit(main())
