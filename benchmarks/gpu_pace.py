"""How fast a GPU is used: trials a minute against stock MetaSchedule, how busy it is, what a minute gives.

    python benchmarks/gpu_pace.py [--row resnet50:float16:1] [--seconds 90] [--stock-seconds 40]

Needs an NVIDIA GPU, PyTorch, torchvision and Triton; stock MetaSchedule also needs nvcc. Tunes one network
from an empty store, then gives stock MetaSchedule so many seconds for the convolution or product with the
most arithmetic, alone: the best case for its batches of 64, which it builds on all cores. What it had
measured by then counts.
"""

import argparse
import json
import sys
import tempfile
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import from_nothing  # noqa: F401
from gpu_models import begun, last_line, require_gpu, tuned, wait

RECORDS = "database_tuning_record.json"
BATCH = 64


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--row", default="resnet50:float16:1", metavar="NAME:DTYPE:BATCH")
    parser.add_argument("--seconds", type=float, default=90.0, help="seconds of tuning")
    parser.add_argument("--trials", type=int, default=5000)
    parser.add_argument("--stock-seconds", type=float, default=40.0)
    parser.add_argument("--folder", type=Path, help="keep the program, the bundle and the store here")
    parser.add_argument("--stock", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.stock:
        tune_stock(options.stock, options.folder)
        return
    require_gpu()
    with tempfile.TemporaryDirectory() as temporary:
        folder = options.folder or Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        print(json.dumps(compared(options, folder), indent=1))


def compared(options: Any, folder: Path) -> dict[str, Any]:
    """Both sides, one after the other; stock alone may fail."""
    from gpu.networks import Row
    from gpu.rivals import export

    row = Row.read(options.row)
    program = folder / f"{row.file}.pt2"
    if not program.is_file():
        export(row, folder)
    how = SimpleNamespace(store=str(folder / "pace.db"), trials=options.trials, seconds=options.seconds)
    names = (
        "tuning_s",
        "trials",
        "failed",
        "trials_a_minute",
        "gpu_busy",
        "gpu_busy_of_all",
        "after_a_minute",
    )
    found = tuned(row, folder, how)
    ours = {name: found.get(name) for name in names}
    stock = timed_stock(program, folder, options.stock_seconds)
    ratio = ours["trials_a_minute"] / stock["trials_a_minute"] if stock.get("trials") else None
    return {"row": str(row), "ours": ours, "stock": stock, "ratio": ratio}


def timed_stock(program: Path, folder: Path, seconds: float) -> dict[str, Any]:
    """What stock MetaSchedule measures in so many seconds, once its search has begun."""
    place, log = folder / "stock", folder / "stock.log"
    place.mkdir(exist_ok=True)
    command = [sys.executable, __file__, "--stock", str(program), "--folder", str(place)]
    child = begun(command, log, {})
    while child.poll() is None and not (place / "begun").is_file():
        time.sleep(0.1)
    started = time.monotonic()
    wait(child, seconds)
    took_s = time.monotonic() - started
    records = place / RECORDS
    trials = len(records.read_text().splitlines()) if records.is_file() else 0
    if not trials:
        return {"trials": 0, "seconds": took_s, "error": last_line(log)}
    return {"trials": trials, "seconds": took_s, "trials_a_minute": 60 * trials / took_s}


def tune_stock(program: Path, folder: Path) -> None:
    """Stock `tune_tir` as its documentation shows it, for one kernel of a program."""
    from tvm.s_tir import meta_schedule as ms

    from tuneloom.model import ModelRecipe, ModelSummary
    from tuneloom.tuners.tvm.lowering.payloads import unpack_kernel
    from tuneloom.tuners.tvm.models.opening import open_model

    summary = open_model(ModelRecipe(key="stock", source=str(program), shapes={}, target="cuda"))
    assert isinstance(summary, ModelSummary), summary
    plain = [task for task in summary.tasks if "conv2d" in task.name or "matmul" in task.name]
    kernel = unpack_kernel(max(plain, key=lambda task: task.gflop).payload)
    (folder / "begun").touch()
    ms.tir_integration.tune_tir(
        mod=kernel.module,
        target=kernel.target.to_tvm(),
        work_dir=str(folder),
        max_trials_global=100 * BATCH,
        num_trials_per_iter=BATCH,
        builder=ms.builder.LocalBuilder(timeout_sec=60),
        runner=ms.runner.LocalRunner(timeout_sec=30),
        seed=1,
    )


if __name__ == "__main__":
    main()
