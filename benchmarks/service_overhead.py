"""What does a job cost through the service, against the same job by `tuneloom tune`?

    python benchmarks/service_overhead.py [--case mock|network] [--pairs 1]

Both commands are timed from their start to their end, bundle included: `tuneloom tune MODEL` and
`tuneloom tune MODEL --server URL`, in turn, the first of a pair alternating. All processes are forks of a
warm interpreter, so neither side is charged for imports, and the executor waits for work as it does in a
service. Each side has a store of its own and reuses nothing.

`mock` has stages of known lengths, `network` is a small convolutional network that is compiled and
measured. Adds pairs to benchmarks/results/service_overhead.json; exits with 1 if the median ratio of a
case is above 1.03.
"""

import argparse
import json
import os
import shutil
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from statistics import median
from typing import Any

import tests_on_path  # noqa: F401
from serving import Team, team
from support.models.onnx_files import write_network

RESULTS = Path(__file__).parent / "results" / "service_overhead.json"
MOST = 1.03
MOCK = "mock:tasks=2,size=4000,build=0.1,profile=0.2"
TRIALS = {"mock": 300, "network": 160}
CHANNELS, SIZE = 32, 28


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--case", choices=["mock", "network"], default="mock")
    parser.add_argument("--pairs", type=int, default=1)
    options = parser.parse_args()
    with team() as made:
        rows = measure(made, options.case, options.pairs)
    found = keep(rows)
    print(json.dumps(found, indent=2))
    return 1 if any(row["ratio"] > MOST for row in found["cases"]) else 0


def measure(made: Team, case: str, pairs: int) -> list[dict[str, Any]]:
    made.serve()
    made.execute()
    os.environ["TUNELOOM_TOKEN"] = made.token("weavers")
    words = wanted(made, case)
    here, there = ["--store", str(made.workplace.folder / "own.db")], ["--server", made.url]
    rows = []
    for number in range(len(known()), len(known()) + pairs):
        order = [("local_s", here), ("service_s", there)]
        taken = {name: timed(made, [*words, *extra]) for name, extra in order[:: 1 - 2 * (number % 2)]}
        rows.append({"case": case, **taken, "ratio": taken["service_s"] / taken["local_s"]})
    return rows


def wanted(made: Team, case: str) -> list[str]:
    """The words of the command, apart from who does it."""
    words = ["tune", "--quiet", "--reuse", "off", "--batch", "8", "--trials", str(TRIALS[case])]
    if case == "mock":
        return [*words, MOCK]
    model = write_network(made.workplace.folder / "net.onnx", channels=CHANNELS, size=SIZE)
    return [*words, str(model), "--out", str(made.workplace.folder / "out")]


def timed(made: Team, words: Sequence[str]) -> float:
    """How long a command takes; it has to succeed."""
    shutil.rmtree(made.workplace.folder / "out", ignore_errors=True)
    began_s = time.monotonic()
    done = made.workplace.run(*words)
    if done.returncode:
        raise RuntimeError(done.stderr[-500:])
    return time.monotonic() - began_s


def known() -> list[dict[str, Any]]:
    """The pairs that were measured before."""
    found: list[dict[str, Any]] = json.loads(RESULTS.read_text())["pairs"] if RESULTS.exists() else []
    return found


def keep(rows: list[dict[str, Any]]) -> dict[str, Any]:
    """Add pairs to those that are there."""
    pairs = known() + rows
    names = sorted({row["case"] for row in pairs})
    cases = [summary(name, [row for row in pairs if row["case"] == name]) for name in names]
    RESULTS.parent.mkdir(exist_ok=True)
    RESULTS.write_text(json.dumps({"cases": cases, "pairs": pairs}, indent=2) + "\n")
    return {"cases": cases, "pairs": pairs}


def summary(case: str, pairs: Sequence[dict[str, Any]]) -> dict[str, Any]:
    local_s, service_s, ratio = (
        median(row[name] for row in pairs) for name in ("local_s", "service_s", "ratio")
    )
    return {"case": case, "pairs": len(pairs), "local_s": local_s, "service_s": service_s, "ratio": ratio}


if __name__ == "__main__":
    sys.exit(main())
