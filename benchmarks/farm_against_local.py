"""One machine as a farm of one, against the same machine without Ray: trials a minute.

Usage: python benchmarks/farm_against_local.py [--model zoo:squeezenet] [--trials 96] [--pairs 3] [--out FILE]

Both tune the same model with the same seed, one after the other, in turn. Counted is the time from the
first stage of tuning to the last trial: starting Ray and importing TVM happen once a run and are
told apart.
"""

import argparse
import json
import os
import platform
import tempfile
import time
from contextlib import closing
from pathlib import Path
from statistics import median
from typing import Any

from tuneloom.app.requests.sources import located
from tuneloom.app.runs.service import RunSettings, tune
from tuneloom.model import Budget, JobSpec
from tuneloom.store import open_existing

OUT = Path(__file__).parent / "results" / "farm_against_local.json"
TUNING = ("select", "build", "profile", "update", "canary")


def measure(model: str, trials: int, seed: int, farm: str | None) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as folder:
        place = str(Path(folder) / "store.db")
        budget = Budget(trials=trials)
        spec = JobSpec(name="it", model=located(model), budget=budget, seed=seed, batch=16, reuse="off")
        started = time.perf_counter()
        outcome = tune([spec], RunSettings(store=place, farm=farm))
        wall_s = time.perf_counter() - started
        with closing(open_existing(place)) as store:
            spans = [span for span in store.spans(outcome.run) if span.kind in TUNING]
            kept = len(store.trials(outcome.jobs[0].id))
    tuning_s = max(span.end_s for span in spans) - min(span.start_s for span in spans)
    return {"trials": kept, "tuning_s": tuning_s, "wall_s": wall_s, "trials_per_minute": 60 * kept / tuning_s}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--model", default="zoo:squeezenet")
    parser.add_argument("--trials", type=int, default=96)
    parser.add_argument("--pairs", type=int, default=3)
    parser.add_argument("--out", type=Path, default=OUT)
    options = parser.parse_args()
    pairs: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory() as folder:
        farm = Path(folder) / "farm.toml"
        farm.write_text('engine = "ray"\n')
        for pair in range(options.pairs):
            sides = [("local", None), ("ray", str(farm))]
            found: dict[str, Any] = {"pair": pair}
            for name, file in sides if pair % 2 else reversed(sides):
                found[name] = measure(options.model, options.trials, pair, file)
            found["ratio"] = found["ray"]["trials_per_minute"] / found["local"]["trials_per_minute"]
            pairs.append(found)
            told = {
                "model": options.model,
                "pairs": pairs,
                "ratio": median(each["ratio"] for each in pairs),
                "load": os.getloadavg()[0],
                "machine": platform.machine(),
            }
            options.out.write_text(json.dumps(told, indent=1) + "\n")
            print(f"pair {pair + 1}: {found['ratio']:.3f}", flush=True)


if __name__ == "__main__":
    main()
