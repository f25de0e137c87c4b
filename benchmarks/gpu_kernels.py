"""The two examples for a GPU in several settings, against the vendor's library.

    python benchmarks/gpu_kernels.py [--trials 80] [--seeds 3] [--minutes 8] [--settings plain chance]
    python benchmarks/gpu_kernels.py --table          (draw the table again, tune nothing)

Needs a CUDA GPU, PyTorch and Triton. `chance` is the random search, the others are ours:
plain, with points built around before anything runs (`presample`), and with two more
candidates built than run, of which what the compiler revealed chooses (`spare`). Every
setting gets its first seed before any gets its second; rows that the results hold are
not measured again.
"""

import argparse
import importlib
import json
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from math import inf
from pathlib import Path
from statistics import median
from typing import Any

from kernel_tables import table
from tuneloom.kernel import Plan, tune
from tuneloom.model import Budget

EXAMPLES = Path(__file__).parents[1] / "examples" / "kernels"
RESULTS = Path(__file__).parent / "results" / "kernel_gpu.json"
KERNELS = ("reduction_cuda", "matmul_triton")
SETTINGS: dict[str, dict[str, Any]] = {
    "plain": {},
    "presample": {"presample": True},
    "spare": {"spare": 2},
    "chance": {"search": "random"},
}
Rows = Sequence[Mapping[str, Any]]
CHECKPOINTS = (10, 20, 40, 80)


def measured(kernel: str, setting: str, seed: int, trials: int) -> dict[str, Any]:
    """Tune once; the vendor is timed afterwards, on the same device."""
    example = importlib.import_module(kernel)
    plan = Plan(budget=Budget(trials=trials), measuring=example.RULES, seed=seed, **SETTINGS[setting])
    with tempfile.TemporaryDirectory() as folder:
        result = tune(example.kernel(), plan, store=f"{folder}/store.db")
    times = [trial.seconds or inf for trial in result.trials]
    vendor_s = example.vendor_seconds()
    return {
        "kernel": kernel,
        "setting": setting,
        "seed": seed,
        "trials": len(times),
        "failed": {kind.value: count for kind, count in result.failures.items()},
        "best_us_at": [min(times[:n]) * 1e6 for n in CHECKPOINTS if n <= len(times)],
        "best_us": result.seconds * 1e6,
        "vendor_us": vendor_s * 1e6,
        "times_vendor": vendor_s / result.seconds,
        "tuning_s": result.elapsed_s,
        "presampling_s": result.presampling_s,
        "built_only": result.built_only,
    }


def missing(rows: Rows, seeds: int, settings: Sequence[str]) -> Iterator[tuple[str, str, int]]:
    """What was not measured yet."""
    known = {(row["kernel"], row["setting"], row["seed"]) for row in rows}
    for seed in range(seeds):
        for kernel in KERNELS:
            yield from ((kernel, s, seed) for s in settings if (kernel, s, seed) not in known)


def drawn(rows: Rows) -> str:
    """Medians over seeds, one line for each kernel and setting."""
    paces = tuple(f"best at {count}, us" for count in CHECKPOINTS)
    columns = ("kernel", "setting", "seeds", "failed", *paces, "best / vendor's speed", "seconds")
    pairs = dict.fromkeys((row["kernel"], row["setting"]) for row in rows)
    return table(columns, [_line(rows, *pair) for pair in pairs])


def _line(rows: Rows, kernel: str, setting: str) -> Sequence[object]:
    own = [row for row in rows if (row["kernel"], row["setting"]) == (kernel, setting)]
    failed = sum(sum(row["failed"].values()) for row in own) / sum(row["trials"] for row in own)
    return (
        kernel,
        setting,
        len(own),
        f"{failed:.0%}",
        *(f"{median(times):.1f}" for times in zip(*(row["best_us_at"] for row in own), strict=True)),
        f"{median(row['times_vendor'] for row in own):.2f}",
        f"{median(row['tuning_s'] for row in own):.0f}",
    )


def main() -> None:
    """Measure until all is done or the time is over."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--trials", type=int, default=80)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--settings", nargs="+", choices=list(SETTINGS), default=list(SETTINGS))
    parser.add_argument("--minutes", type=float, default=inf, help="begin no run afterwards")
    parser.add_argument("--out", type=Path, default=RESULTS)
    parser.add_argument("--table", action="store_true", help="draw the table of earlier results")
    arguments = parser.parse_args()
    if arguments.table:
        print(drawn(json.loads(arguments.out.read_text())))
        return
    sys.path.insert(0, str(EXAMPLES))
    rows = json.loads(arguments.out.read_text()) if arguments.out.exists() else []
    end_s = time.monotonic() + arguments.minutes * 60
    for kernel, setting, seed in missing(rows, arguments.seeds, arguments.settings):
        if time.monotonic() > end_s:
            break
        rows.append(measured(kernel, setting, seed, arguments.trials))
        arguments.out.write_text(json.dumps(rows, indent=1) + "\n")
        print(json.dumps(rows[-1]), flush=True)


if __name__ == "__main__":
    main()
