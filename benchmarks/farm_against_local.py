"""One machine as a farm of one, against the same machine without Ray: trials a minute.

Usage: python benchmarks/farm_against_local.py [--model zoo:squeezenet] [--trials 96] [--pairs 3] [--out FILE]

Both tune the same model with the same seed, one after the other, in turn, each in a process of its
own. Counted is the time from the first stage of tuning to the last trial: starting Ray and importing
TVM happen once a run and are told apart. Pairs are added to those that the file has.
"""

import argparse
import json
import os
import platform
import tempfile
import time
from collections.abc import Mapping
from concurrent.futures import ProcessPoolExecutor
from contextlib import closing
from multiprocessing import get_context
from pathlib import Path
from statistics import median
from typing import Any

import from_nothing  # noqa: F401
from tuneloom.app.requests.sources import located
from tuneloom.app.runs.executing.in_process import tune
from tuneloom.app.runs.settings import RunSettings
from tuneloom.model import Budget, JobSpec
from tuneloom.store import SpanRecord, open_existing

OUT = Path(__file__).parent / "results" / "farm_against_local.json"
TUNING = ("select", "build", "profile", "update", "canary")


def spec_of(model: str, trials: int, seed: int, target: str = "cpu") -> JobSpec:
    return JobSpec(
        name="it",
        model=located(model),
        tuner="mock" if model.startswith("mock:") else "tvm",
        target=target,
        device_key=target,
        budget=Budget(trials=trials),
        seed=seed,
        batch=16,
        reuse="off",
    )


def measure(spec: JobSpec, farm: str | None) -> dict[str, Any]:
    """Tune once; raises what the run failed with."""
    with tempfile.TemporaryDirectory() as folder:
        place = str(Path(folder) / "store.db")
        started = time.perf_counter()
        outcome = tune([spec], RunSettings(store=place, farm=farm))
        wall_s = time.perf_counter() - started
        if outcome.failure is not None:
            raise outcome.failure
        with closing(open_existing(place)) as store:
            spans = [span for span in store.spans(outcome.run) if span.kind in TUNING]
            kept = len(store.trials(outcome.jobs[0].id))
    tuning_s = max(span.end_s for span in spans) - min(span.start_s for span in spans)
    result = outcome.jobs[0].result
    return {
        "trials": kept,
        "failures": result.get("failures"),
        "latency_before_s": result.get("latency_before_s"),
        "latency_after_s": result.get("latency_after_s"),
        "busy_s": {kind: round(sum(_length_s(spans, kind)), 2) for kind in TUNING},
        "tuning_s": tuning_s,
        "wall_s": wall_s,
        "trials_per_minute": 60 * kept / tuning_s,
    }


def _length_s(spans: list[SpanRecord], kind: str) -> list[float]:
    return [span.end_s - span.start_s for span in spans if span.kind == kind]


def apart(spec: JobSpec, farm: str | None) -> dict[str, Any]:
    """Tune once in a new process, which takes all that Ray and TVM leave behind along."""
    with ProcessPoolExecutor(1, get_context("spawn")) as pool:
        return pool.submit(measure, spec, farm).result()


def pair_of(spec: JobSpec, sides: Mapping[str, str | None], number: int) -> dict[str, Any]:
    """Both sides, beginning with the other one every time, and Ray's trials a minute against local ones."""
    found: dict[str, Any] = {"pair": number}
    for name in sorted(sides, reverse=bool(number % 2)):
        found[name] = apart(spec, sides[name])
    found["ratio"] = found["ray"]["trials_per_minute"] / found["local"]["trials_per_minute"]
    return found


def told(model: str, pairs: list[dict[str, Any]]) -> dict[str, Any]:
    return {
        "model": model,
        "pairs": pairs,
        "ratio": median(each["ratio"] for each in pairs),
        "load": os.getloadavg()[0],
        "cores": os.cpu_count(),
        "machine": platform.machine(),
    }


def parsed(trials: int, pairs: int, out: Path, about: str | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=about, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", default="zoo:squeezenet")
    parser.add_argument("--trials", type=int, default=trials)
    parser.add_argument("--pairs", type=int, default=pairs, help="how many more to measure")
    parser.add_argument("--fresh", action="store_true", help="forget the pairs that the file has")
    parser.add_argument("--out", type=Path, default=out)
    return parser.parse_args()


def known_pairs(options: argparse.Namespace) -> list[dict[str, Any]]:
    """What an earlier start of the program has measured of the same."""
    if options.fresh or not options.out.exists():
        return []
    told_before = json.loads(options.out.read_text())
    return list(told_before["pairs"]) if told_before["model"] == options.model else []


def main() -> None:
    options = parsed(96, 3, OUT, __doc__)
    pairs = known_pairs(options)
    with tempfile.TemporaryDirectory() as folder:
        farm = Path(folder) / "farm.toml"
        farm.write_text('engine = "ray"\n')
        for number in range(len(pairs), len(pairs) + options.pairs):
            spec = spec_of(options.model, options.trials, number)
            pairs.append(pair_of(spec, {"local": None, "ray": str(farm)}, number))
            options.out.write_text(json.dumps(told(options.model, pairs), indent=1) + "\n")
            print(f"pair {number + 1}: {pairs[-1]['ratio']:.3f}", flush=True)


if __name__ == "__main__":
    main()
