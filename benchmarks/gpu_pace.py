"""How fast a GPU is used: trials a minute against stock MetaSchedule, how busy it is, what a minute gives.

    python benchmarks/gpu_pace.py [--row resnet50:float16:1] [--seconds 90] [--stock-seconds 150]
        [--stock-batch 64] [--out FILE.json]

Needs an NVIDIA GPU, PyTorch, torchvision and Triton; stock MetaSchedule also needs nvcc. Tunes one network
from an empty store, then gives stock MetaSchedule so many seconds for the convolution or product with the
most arithmetic, alone: the best case for its batches of 64, which it builds on all cores. Every batch
starts new processes, each of which parses TVM's intrinsics first (49 s on a slow core): smaller batches would
make it slower. What it had measured by then counts, failures too, as with ours. Builds that were done are
counted as well: where no batch was measured, they bound its trials.
"""

import argparse
import json
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import from_nothing  # noqa: F401
from gpu_models import begun, last_line, require_gpu, tuned, wait

RESULTS = Path(__file__).parent / "results" / "gpu_pace.json"
RECORDS, BUILT = "database_tuning_record.json", "built.txt"
STOCK_BUILD_TIMEOUT_S = 150.0
BATCHES = 100
"""More than it gets time for."""


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--row", default="resnet50:float16:1", metavar="NAME:DTYPE:BATCH")
    parser.add_argument("--seconds", type=float, default=90.0, help="seconds of tuning")
    parser.add_argument("--trials", type=int, default=5000)
    parser.add_argument("--stock-seconds", type=float, default=150.0)
    parser.add_argument("--stock-batch", type=int, default=64)
    parser.add_argument("--folder", type=Path, help="keep the program, the bundle and the store here")
    parser.add_argument("--out", type=Path, default=RESULTS)
    parser.add_argument("--stock", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.stock:
        tune_stock(options.stock, options.folder, options.stock_batch)
        return
    require_gpu()
    with tempfile.TemporaryDirectory() as temporary:
        folder = options.folder or Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        told = json.dumps(compared(options, folder), indent=1)
        print(told)
        options.out.write_text(f"{told}\n")


def compared(options: Any, folder: Path) -> dict[str, Any]:
    """Both sides, one after the other; stock alone may fail."""
    from gpu.networks import Row
    from gpu.rivals import export

    row = Row.read(options.row)
    program = folder / f"{row.file}.pt2"
    if not program.is_file():
        export(row, folder)
    how = SimpleNamespace(
        store=str(folder / "pace.db"), trials=options.trials, seconds=options.seconds, layout="blocked"
    )
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
    stock = timed_stock(program, folder, options)
    at_most = 60 * max(stock["trials"] or stock["built"], 1) / stock["seconds"]
    return {
        "row": str(row),
        "ours": ours,
        "stock": stock,
        "ratio": ours["trials_a_minute"] / at_most,
        "ratio_at_least": not stock["trials"],
    }


def timed_stock(program: Path, folder: Path, options: Any) -> dict[str, Any]:
    """What stock MetaSchedule builds and measures in some seconds, once its search has begun."""
    place, log = folder / "stock", folder / "stock.log"
    place.mkdir(exist_ok=True)
    command = [sys.executable, __file__, "--stock", str(program), "--folder", str(place)]
    child = begun([*command, "--stock-batch", str(options.stock_batch)], log, {})
    while child.poll() is None and not (place / "begun").is_file():
        time.sleep(0.1)
    started = time.monotonic()
    wait(child, options.stock_seconds)
    took_s = time.monotonic() - started
    found = {"batch": options.stock_batch, "seconds": took_s, "built": lines_of(place / BUILT)}
    trials = lines_of(place / RECORDS)
    more = {"trials_a_minute": 60 * trials / took_s} if trials else {"error": last_line(log)}
    return {"trials": trials, **found, **more}


def lines_of(file: Path) -> int:
    return len(file.read_text().splitlines()) if file.is_file() else 0


def tune_stock(program: Path, folder: Path, batch: int) -> None:
    """Stock `tune_tir` as its documentation shows it, for one kernel of a program."""
    from tvm.s_tir import meta_schedule as ms

    from tuneloom.compiler.fast_import import load_intrinsics
    from tuneloom.model import ModelRecipe, ModelSummary
    from tuneloom.tuners.tvm.lowering.payloads import unpack_kernel
    from tuneloom.tuners.tvm.models.opening import open_model

    load_intrinsics("cuda")
    summary = open_model(ModelRecipe(key="stock", source=str(program), shapes={}, target="cuda"))
    assert isinstance(summary, ModelSummary), summary
    plain = [task for task in summary.tasks if "conv2d" in task.name or "matmul" in task.name]
    kernel = unpack_kernel(max(plain, key=lambda task: task.gflop).payload)
    (folder / "begun").touch()
    ms.tir_integration.tune_tir(
        mod=kernel.module,
        target=kernel.target.to_tvm(),
        work_dir=str(folder),
        max_trials_global=BATCHES * batch,
        num_trials_per_iter=batch,
        builder=ms.builder.LocalBuilder(timeout_sec=STOCK_BUILD_TIMEOUT_S, f_build=counting(folder / BUILT)),
        runner=ms.runner.LocalRunner(timeout_sec=30),
        seed=1,
    )


def counting(place: Path) -> Callable[..., Any]:
    """How stock MetaSchedule builds a candidate, with a line in a file for each that is done."""

    def build(module: Any, target: Any, parameters: Any) -> Any:
        from tvm.s_tir.meta_schedule.builder.local_builder import default_build

        made = default_build(module, target, parameters)
        with place.open("a") as file:
            file.write("built\n")
        return made

    return build


if __name__ == "__main__":
    main()
