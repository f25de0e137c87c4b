"""Graphs that others collected, in PyTorch, Inductor and Tuneloom: speed, outputs and ES(t).

python benchmarks/graphnet/run.py SAMPLES --seed 1 --count 40 --trials 60

SAMPLES is `samples/` of a clone of GraphNet, or one of the folders in it. Every graph has a process of its
own with one thread. Results are kept in benchmarks/results/graphnet_SEED.json, where a later call goes on.
"""

import argparse
import json
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import median
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))
from graphnet import samples, scores

RESULTS = Path(__file__).parents[1] / "results"
COMPILERS = ("inductor", "tuneloom")
ROUNDS, WARM_UPS, LIMIT_S = 15, 6, 3600


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("samples", type=Path)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=40)
    parser.add_argument("--most-weights", type=int, default=40_000_000)
    parser.add_argument("--trials", type=int, default=60)
    parser.add_argument("--one", action="store_true", help="measure the graph of this folder, here")
    options = parser.parse_args()
    if options.one:
        print(json.dumps(measured(options.samples, options.trials)))
        return 0
    path = RESULTS / f"graphnet_{options.seed}.json"
    rows: list[dict[str, Any]] = json.loads(path.read_text()) if path.is_file() else []
    known = {row["sample"] for row in rows}
    for sample in samples.chosen(options.samples, options.seed, options.count, options.most_weights):
        if f"{sample.parent.name}/{sample.name}" not in known:
            rows.append(in_a_process(sample, options.trials))
            print(shown(rows[-1]), flush=True)
            path.write_text(json.dumps(rows, indent=1) + "\n")
    print_scores(rows)
    return 0


def in_a_process(sample: Path, trials: int) -> dict[str, Any]:
    """One graph's row; a crash is a row, too."""
    words = [sys.executable, __file__, str(sample), "--one", "--trials", str(trials)]
    name = f"{sample.parent.name}/{sample.name}"
    try:
        done = subprocess.run(words, capture_output=True, text=True, timeout=LIMIT_S, check=False)
        return {"sample": name, **json.loads(done.stdout.splitlines()[-1])}
    except (subprocess.TimeoutExpired, ValueError, IndexError) as error:
        return {"sample": name, "eager": {"error": f"{type(error).__name__}: {error}"[:200]}}


def measured(sample: Path, trials: int) -> dict[str, Any]:
    """Times of single calls, taken in turn, and at which tolerance outputs agree with PyTorch's."""
    import torch

    torch.set_num_threads(1)
    with torch.no_grad():
        model, inputs = samples.opened(sample)
        calls: dict[str, Callable[[], Any]] = {"eager": lambda: model(*inputs)}
        expected = calls["eager"]()
        row: dict[str, Any] = {"eager": {}}
        for name in COMPILERS:
            began = time.perf_counter()
            try:
                calls[name] = compiled(name, model, inputs, trials)
                found = calls[name]()
                row[name] = {"tolerance": scores.least_tolerance(found, expected)}
                row[name]["compile_s"] = time.perf_counter() - began
            except Exception as error:
                calls.pop(name, None)
                row[name] = {"error": f"{type(error).__name__}: {str(error).splitlines()[0]}"[:200]}
        for name, seconds in in_turn(calls).items():
            row[name]["seconds"] = seconds
    return row


def compiled(name: str, model: Any, inputs: Sequence[Any], trials: int) -> Callable[[], Any]:
    import torch

    if name == "inductor":
        own = torch.compile(model)
        return lambda: own(*inputs)
    import tuneloom

    fast = tuneloom.compile(model, inputs, mode="wait", trials=trials)
    for _ in range(WARM_UPS):
        fast(*inputs)
    return lambda: fast(*inputs)


def in_turn(calls: dict[str, Callable[[], Any]]) -> dict[str, float]:
    """The median of single calls."""
    times: dict[str, list[float]] = {name: [] for name in calls}
    for _ in range(ROUNDS):
        for name, call in calls.items():
            began = time.perf_counter()
            call()
            times[name].append(time.perf_counter() - began)
    return {name: median(each[1:]) for name, each in times.items()}


def shown(row: dict[str, Any]) -> str:
    eager = row["eager"]
    if "error" in eager:
        return f"{row['sample']}: {eager['error']}"
    cells = [f"{name} {cell(row[name], eager['seconds'])}" for name in COMPILERS]
    return f"{row['sample']}: eager {eager['seconds'] * 1e3:.2f} ms, {', '.join(cells)}"


def cell(own: dict[str, Any], eager_s: float) -> str:
    return own.get("error") or f"{eager_s / own['seconds']:.2f} times as fast (t {own['tolerance']})"


def print_scores(rows: Sequence[dict[str, Any]]) -> None:
    run = [row for row in rows if "error" not in row["eager"]]
    if not run:
        return
    print("t".rjust(8), *(name.rjust(10) for name in COMPILERS))
    for t in scores.TOLERANCES:
        print(f"{t:8}", *(f"{scores.score(run, name, t):10.3f}" for name in COMPILERS))
    for name in COMPILERS:
        speeds = sorted(
            row["eager"]["seconds"] / row[name]["seconds"] for row in run if "seconds" in row[name]
        )
        right = sum((row[name].get("tolerance") or 0) <= -3 for row in run if "seconds" in row[name])
        print(f"{name}: median {median(speeds or [0]):.2f}, {right} of {len(run)} right at t = -3")


if __name__ == "__main__":
    sys.exit(main())
