"""What an executor costs while it holds many runs: transactions a second, and its own CPU time.

    python benchmarks/service_executor.py [--runs 25] [--seconds 30] [--label after]

A real executor carries out mock jobs whose stages sleep; transactions are counted where they begin. Adds a
row to benchmarks/results/service_executor.json, in place of the one with the same label.
"""

import argparse
import json
import os
import signal
import sys
import tempfile
import threading
import time
from collections import Counter
from contextlib import closing
from pathlib import Path
from typing import Any

from sqlalchemy import Engine, event

from tuneloom.app.requests.job_specs import job_spec
from tuneloom.app.runs.executing.serving import serve_runs
from tuneloom.app.runs.settings import RunSettings
from tuneloom.store import open_store

RESULTS = Path(__file__).parent / "results" / "service_executor.json"
MODEL = "mock:tasks=1,size=4000,profile=0.5"
KINDS = {"BEGIN IMMEDIATE": "writes", "BEGIN": "reads"}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--runs", type=int, default=25)
    parser.add_argument("--seconds", type=float, default=30)
    parser.add_argument("--label", default="now")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        row = {"label": options.label, "runs": options.runs, **measure(options, folder)}
    old = json.loads(RESULTS.read_text()) if RESULTS.exists() else []
    rows = [*(other for other in old if other["label"] != options.label), row]
    RESULTS.parent.mkdir(exist_ok=True)
    RESULTS.write_text(json.dumps(rows, indent=2) + "\n")
    print(json.dumps(row, indent=2))
    return 0


def measure(options: argparse.Namespace, folder: str) -> dict[str, Any]:
    place = str(Path(folder) / "store.db")
    with closing(open_store(place)) as store:
        for number in range(options.runs):
            spec = job_spec({"name": f"job-{number}", "model": MODEL, "trials": 3000, "batch": 2})
            store.submit_run("benchmark", [(spec.name, spec.to_json())])
    counted: Counter[str] = Counter()

    def note(_connection: Any, _cursor: Any, statement: str, *_: Any) -> None:
        counted[KINDS.get(statement, "statements")] += 1

    event.listen(Engine, "before_cursor_execute", note)
    found: dict[str, Any] = {}
    watching = threading.Thread(target=watch, args=(place, options, counted, found), daemon=True)
    watching.start()
    serve_runs(RunSettings(store=place), most_runs=options.runs)
    return found


def watch(place: str, options: argparse.Namespace, counted: "Counter[str]", found: dict[str, Any]) -> None:
    """Wait until all runs are held and trials come, count for a while, and ask the executor to end."""
    with closing(open_store(place)) as store:
        while sum(store.lease_of(run.id) is not None for run in store.runs()) < options.runs:
            time.sleep(1.0)
        time.sleep(10.0)
        trials = sum(store.outcome_counts().values())
        before, cpu_s, began_s = Counter(counted), time.process_time(), time.monotonic()
        time.sleep(options.seconds)
        seconds = time.monotonic() - began_s
        found |= {f"{name}_per_s": (counted[name] - before[name]) / seconds for name in sorted(counted)}
        found["cpu_share"] = (time.process_time() - cpu_s) / seconds
        found["trials_per_s"] = (sum(store.outcome_counts().values()) - trials) / seconds
    os.kill(os.getpid(), signal.SIGTERM)


if __name__ == "__main__":
    sys.exit(main())
