"""Kill writers of a store at random moments and count what is lost or doubled.

    python benchmarks/store_kills.py [--kills 1000] [--seed 1]

Writes benchmarks/results/store_kills.json and exits with 1 if anything is lost.
"""

import argparse
import json
import sys
import tempfile
import time
from dataclasses import asdict
from pathlib import Path

import tests_on_path  # noqa: F401
from support.killed_writers import kill_writers

RESULTS = Path(__file__).parent / "results" / "store_kills.json"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--kills", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        start = time.perf_counter()
        report = kill_writers(Path(folder) / "store.db", options.kills, options.seed)
        result = asdict(report) | {"seed": options.seed, "seconds": round(time.perf_counter() - start, 1)}
    RESULTS.parent.mkdir(exist_ok=True)
    RESULTS.write_text(json.dumps(result, indent=2) + "\n")
    print(json.dumps(result, indent=2))
    return 1 if report.lost or report.doubled or report.skipped else 0


if __name__ == "__main__":
    sys.exit(main())
