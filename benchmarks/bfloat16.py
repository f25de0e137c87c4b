"""Networks in bfloat16 against themselves and ONNX Runtime in float32.

    python benchmarks/bfloat16.py FILE.onnx… [zoo:NAME…] [--trials N] [--cores 2,3] [--out FILE.json]

Ours is tuned with so many trials in either type. ONNX Runtime has no bfloat16 for most operators on CPUs.
All run in turn on one core. Needs a CPU with instructions for bfloat16. A network that the file has already
is skipped.
"""

import argparse
import os
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

import from_nothing  # noqa: F401
from against_onnxruntime import (
    SHAPES,
    Pinned,
    core_list,
    keep,
    machine,
    name_of,
    on_cpu,
    peer,
    rows_of,
    running,
)
from tuneloom.app.runs.executing.in_process import tune
from tuneloom.app.runs.settings import RunSettings
from tuneloom.backends.resolving import resolve_target
from tuneloom.compiler.fast_import import load_tvm
from tuneloom.model import Budget, JobSpec
from tuneloom.tuners.tvm.bundles.loading import load_bundle
from tuneloom.tuners.tvm.importing.sources import import_model
from tuneloom.tuners.tvm.models.compiling.differences import relative_difference
from tuneloom.tuners.tvm.models.compiling.running import RunningModel
from tuneloom.tuners.tvm.models.precision.samples import seeded_inputs
from tuneloom.tuners.tvm.models.rivals.turns import all_in_turn

ANY = 10.0
"""How far outputs are off is shown, not judged."""
SECONDS = 4.0
QUIET = 0.2


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("models", nargs="+")
    parser.add_argument("--trials", type=int, default=60)
    parser.add_argument("--cores", type=core_list, help="which cores everything runs on, such as 2,3")
    parser.add_argument("--out", type=Path, default=Path("benchmarks/results/bfloat16.json"))
    options = parser.parse_args()
    if options.cores:
        os.sched_setaffinity(0, options.cores)
    os.environ |= {"TVM_NUM_THREADS": "1", "TVM_BIND_THREADS": "0"}
    known = {(row["model"], row["trials"]) for row in rows_of(options.out)}
    for model in options.models:
        if (name_of(model), options.trials) not in known:
            row = compared(model, options.trials) | machine()
            keep(options.out, row)
            print(row, flush=True)


def compared(model: str, trials: int) -> dict[str, Any]:
    imported = import_model(model, SHAPES.get(name_of(model)))
    values = seeded_inputs(imported.inputs, seed=1)
    feeds = {info.name: value for info, value in zip(imported.inputs, values, strict=True)}
    tensors = [load_tvm().runtime.tensor(value) for value in values]
    with tempfile.TemporaryDirectory() as folder:
        half, single = (tuned(model, dtype, trials, Path(folder)) for dtype in ("bfloat16", "float32"))
        session = peer(model, 1)
        with Pinned(1):
            off = max(map(relative_difference, half.run(values), session.run(None, feeds)))
            sides = (
                lambda: half.invoke(tensors),
                lambda: single.invoke(tensors),
                lambda: session.run(None, feeds),
            )
            times = all_in_turn(list(sides), SECONDS)
    ours, ours_single, theirs = (float(np.quantile(found, QUIET)) for found in times)
    return {
        "model": name_of(model),
        "trials": trials,
        "tiles": "bf16" in on_cpu(resolve_target("cpu")).tiles,
        "ours_s": ours,
        "ours_float32_s": ours_single,
        "onnxruntime_float32_s": theirs,
        "ratio": ours / ours_single,
        "against_onnxruntime": ours / theirs,
        "spread": [float(q) for q in np.quantile(np.divide(times[0], times[1]), [0.1, 0.9])],
        "difference": off,
    }


def tuned(model: str, dtype: str, trials: int, folder: Path) -> RunningModel:
    spec = JobSpec(
        name=name_of(model),
        model=model,
        shapes=SHAPES.get(name_of(model), {}),
        budget=Budget(trials=trials),
        dtype=dtype,
        tolerance=ANY,
        only_tvm=True,
        out=str(folder / dtype),
    )
    outcome = tune([spec], RunSettings(store=str(folder / f"{dtype}.db")), "benchmarks/bfloat16.py")
    if outcome.failure is not None:
        raise outcome.failure
    return running(load_bundle(folder / dtype).model)


if __name__ == "__main__":
    main()
