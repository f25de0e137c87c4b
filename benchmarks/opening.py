"""CPU seconds of `tuneloom tasks` on a file: the first time, and with what that kept.

    python benchmarks/opening.py net.onnx encoder.pt2 ... [--results FILE]

Seconds that all processes of the command computed; other programs that run meanwhile change them little.
Writes a row per file and machine to benchmarks/results/opening.json.
"""

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from tuneloom.app.farm.surveying import cpu_name

RESULTS = Path(__file__).parent / "results" / "opening.json"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("models", nargs="+", type=Path, metavar="FILE")
    parser.add_argument("--results", type=Path, default=RESULTS)
    options = parser.parse_args()
    for model in options.models:
        row = opened_twice(model)
        print(json.dumps(row), flush=True)
        keep(options.results, row)


def opened_twice(model: Path) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as home:
        first, again = opened(model, home), opened(model, home)
    return {
        "file": model.name,
        "megabytes": round(model.stat().st_size / 1e6, 1),
        "cpu": cpu_name(),
        "first_cpu_s": first[0],
        "again_cpu_s": again[0],
        "first_s": first[1],
        "again_s": again[1],
    }


def opened(model: Path, home: str) -> tuple[float, float]:
    """CPU seconds and seconds of the command, with what is kept in a folder."""
    before, began_s = computed_s(), time.monotonic()
    subprocess.run(
        [sys.executable, "-m", "tuneloom", "tasks", str(model)],
        env={**os.environ, "TUNELOOM_HOME": home},
        check=True,
        stdout=subprocess.DEVNULL,
    )
    return round(computed_s() - before, 2), round(time.monotonic() - began_s, 2)


def computed_s() -> float:
    """CPU seconds of all processes that this one has started and waited for."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def keep(path: Path, row: dict[str, Any]) -> None:
    """Replace the row of this file and machine, or add it."""
    known = json.loads(path.read_text()) if path.exists() else []
    others = [old for old in known if any(old[key] != row[key] for key in ("file", "cpu"))]
    path.write_text(json.dumps([*others, row], indent=1) + "\n")


if __name__ == "__main__":
    main()
