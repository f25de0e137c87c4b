"""What loading a bundle takes: weights in a NumPy archive (format 2) against a mapped safetensors file (3).

python benchmarks/loading_weights.py zoo:resnet50

Each load is a process of its own; the file is in the page cache both times. Anonymous memory is what
other processes that load the same bundle can't share, and the system can't drop.
"""

import argparse
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median

import numpy as np

from tuneloom.backends.resolving import resolve_target
from tuneloom.tuners.tvm.importing.sources import import_model
from tuneloom.tuners.tvm.lowering.graph import lower
from tuneloom.tuners.tvm.models.compiling.building import build_model
from tuneloom.tuners.tvm.models.compiling.compiled import LIBRARY, load_compiled
from tuneloom.tuners.tvm.models.compiling.storing import PARAMETERS
from tuneloom.tuners.tvm.models.precision.samples import seeded_inputs
from tuneloom.tuners.tvm.runner.weights import stored_parameters

_RUNS = 15


def memory_mib() -> dict[str, float]:
    """Memory of this process: everything resident, and what no file backs."""
    lines = Path("/proc/self/smaps_rollup").read_text().splitlines()[1:]
    kib = {line.split(":")[0]: int(line.split()[1]) for line in lines}
    return {"resident_mib": kib["Rss"] / 1024, "anonymous_mib": kib["Anonymous"] / 1024}


def load(folder: Path, model: str) -> None:
    """Load a bundle's model, run it, and print what that took."""
    imported = import_model(model)
    values = seeded_inputs(imported.inputs, seed=0)
    inputs, outputs = imported.inputs, imported.outputs
    del imported
    before = memory_mib()
    started = time.perf_counter()
    running = load_compiled(folder, inputs, outputs).open()
    loaded_s = time.perf_counter() - started
    running.run(values)
    first_s = time.perf_counter() - started - loaded_s
    timer = running.timer(values)
    grown = {name: round(size - before[name], 1) for name, size in memory_mib().items()}
    times = [timer() for _ in range(_RUNS)]
    print(
        json.dumps(
            {"load_s": round(loaded_s, 4), "first_run_s": round(first_s, 4), "run_s": round(median(times), 4)}
            | grown
        )
    )


def main() -> None:
    """Compile a model, keep it in both formats, and load each three times in turn."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("model")
    parser.add_argument("--load", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.load:
        load(options.load, options.model)
        return
    with tempfile.TemporaryDirectory() as place:
        new, old = Path(place) / "new", Path(place) / "old"
        new.mkdir()
        old.mkdir()
        build_model(lower(import_model(options.model), resolve_target("cpu")), {}, guess=True).export(new)
        (old / LIBRARY).symlink_to(new / LIBRARY)
        np.savez(old / "parameters.npz", **stored_parameters(new))
        print(f"weights: {(new / PARAMETERS).stat().st_size / 2**20:.1f} MiB")
        for _ in range(3):
            for name, folder in (("npz", old), ("safetensors", new)):
                command = [sys.executable, __file__, options.model, "--load", str(folder)]
                done = subprocess.run(command, capture_output=True, text=True, check=True)
                print(name, done.stdout.strip(), flush=True)


if __name__ == "__main__":
    main()
