"""A network that the starter bank has never seen: without trials, against itself after some hundreds.

    python benchmarks/first_answer.py zoo:inception_v1 [--trials 400] [--target TARGET] [--results FILE]

Both are tuned by the command line, each from an empty store with what comes with the program, and timed from
its start to its end. Then both bundles run in turns. Writes a row per network and machine to
benchmarks/results/first_answer.json.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median

from tuneloom.app.farm.surveying import cpu_name
from tuneloom.tuners.tvm.bundles.loading import load_bundle

RESULTS = Path(__file__).parent / "results" / "first_answer.json"
TURNS, TURN_S = 15, 0.3


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("models", nargs="+", metavar="MODEL")
    parser.add_argument("--trials", type=int, default=400)
    parser.add_argument("--target", default="cpu")
    parser.add_argument("--results", type=Path, default=RESULTS)
    options = parser.parse_args()
    for model in options.models:
        row = compared(model, options.target, options.trials)
        print(json.dumps(row), flush=True)
        keep(options.results, row)


def compared(model: str, target: str, trials: int) -> dict[str, object]:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        at_once_s = tuned(model, target, 0, folder / "at_once")
        tuned_s = tuned(model, target, trials, folder / "tuned")
        at_once, best = in_turns([folder / "at_once" / "bundle", folder / "tuned" / "bundle"])
    return {
        "network": model,
        "cpu": cpu_name(),
        "target": target,
        "at_once_s": round(at_once_s, 1),
        "at_once_ms": round(at_once * 1e3, 3),
        "trials": trials,
        "tuned_s": round(tuned_s, 1),
        "tuned_ms": round(best * 1e3, 3),
        "ratio": round(at_once / best, 3),
    }


def tuned(model: str, target: str, trials: int, folder: Path) -> float:
    """Write a bundle below a folder; returns the seconds of the whole command."""
    folder.mkdir()
    words = ["tune", model, "--target", target, "--trials", str(trials), "--only-tvm", "--quiet"]
    words += ["--store", str(folder / "store.db"), "--out", str(folder / "bundle")]
    started_s = time.monotonic()
    subprocess.run([sys.executable, "-m", "tuneloom", *words], check=True, stdout=subprocess.DEVNULL)
    return time.monotonic() - started_s


def in_turns(bundles: list[Path]) -> list[float]:
    """Median seconds of each bundle; they take turns, so that a busy machine slows both."""
    os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    opened = [load_bundle(folder) for folder in bundles]
    times: list[list[float]] = [[] for _ in opened]
    for _ in range(TURNS):
        for bundle, found in zip(opened, times, strict=True):
            found += bundle.time(TURN_S)
    return [median(found) for found in times]


def keep(path: Path, row: dict[str, object]) -> None:
    """Replace the row of this network and machine, or add it."""
    known = json.loads(path.read_text()) if path.exists() else []
    same = ("network", "cpu", "target")
    others = [old for old in known if any(old[key] != row[key] for key in same)]
    path.write_text(json.dumps([*others, row], indent=1) + "\n")


if __name__ == "__main__":
    main()
