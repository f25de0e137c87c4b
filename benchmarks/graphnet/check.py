"""Whether graphs that others collected are imported and computed right, without tuning: one line a graph.

python benchmarks/graphnet/check.py SAMPLES --seeds 1 2 3 --count 40 --processes 2

SAMPLES is `samples/` of a clone of GraphNet, or folders of single graphs. Every graph is exported, imported,
compiled with default schedules and compared with PyTorch, in a process of its own.
"""

import faulthandler
import io
import json
import multiprocessing
import os
import sys
import threading
import time
import warnings
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))
import torch

from graphnet import samples, scores
from tuneloom.backends.resolving import resolve_target
from tuneloom.compiler.fast_import import load_tvm
from tuneloom.errors import reason_of
from tuneloom.tuners.tvm.importing.sources import import_model
from tuneloom.tuners.tvm.lowering.graph import lower
from tuneloom.tuners.tvm.models.compiling.building import build_plain

LIMIT_S = 900
FORKING = threading.Lock()


def main() -> int:
    parser = samples.asking(__doc__)
    parser.add_argument("--processes", type=int, default=1)
    parser.add_argument("--out", type=Path, help="where rows are added, one JSON object a line")
    options = parser.parse_args()
    graphs = samples.picked(options)
    if not graphs:
        parser.error("no graphs there; give samples/ of a clone of GraphNet, or folders of single graphs")
    load_tvm()
    load_export()
    with ThreadPoolExecutor(options.processes) as pool:
        rows = list(pool.map(lambda graph: told(in_a_process(graph), options.out), graphs))
    right = sum((row.get("tolerance") or 0) <= -3 for row in rows)
    run = sum("eager_error" not in row for row in rows)
    print(f"{right} of {run} right at t = -3 ({len(rows) - run} do not run in PyTorch)")
    return 0


def load_export() -> None:
    """Import what `torch.export` needs, once for all processes."""
    with torch.no_grad():
        torch.export.save(torch.export.export(torch.nn.ReLU(), (torch.ones(1),)), io.BytesIO())


def told(row: dict[str, Any], out: Path | None) -> dict[str, Any]:
    print(json.dumps(row), flush=True)
    if out is not None:
        with out.open("a") as file:
            file.write(json.dumps(row) + "\n")
    return row


def in_a_process(sample: Path) -> dict[str, Any]:
    """One graph's row; a crash is a row, too."""
    context = multiprocessing.get_context("fork")
    theirs, ours = context.Pipe()
    process = context.Process(target=_send, args=(sample, theirs))
    with FORKING:  # libraries that prepare for a fork do not expect a second one
        process.start()
    theirs.close()
    name = samples.title(sample)
    try:
        return {"sample": name, **(ours.recv() if ours.poll(LIMIT_S) else {"error": f"over {LIMIT_S} s"})}
    except EOFError:
        process.join()
        return {"sample": name, "error": f"crashed: {process.exitcode}"}
    finally:
        process.kill()
        process.join()


def _send(sample: Path, pipe: Any) -> None:
    faulthandler.enable()
    warnings.simplefilter("ignore")
    pipe.send(checked(sample))


def checked(sample: Path) -> dict[str, Any]:
    """What came of one graph: the least tolerance at which outputs agree, or why there is none."""
    torch.set_num_threads(1)
    row: dict[str, Any] = {}
    began = time.process_time()
    try:
        with torch.no_grad():
            model, inputs = samples.opened(sample)
            expected = model(*inputs)
    except Exception as error:
        return {"eager_error": _line(error)}
    path = Path(f"/tmp/graphnet-{os.getpid()}.pt2")
    try:
        with torch.no_grad():
            torch.export.save(torch.export.export(model, inputs), path)
        row["export_s"] = time.process_time() - began
        imported = import_model(str(path))
        row["import_s"] = time.process_time() - began - row["export_s"]
        row["notes"] = [note for note in imported.notes if "batch" not in note]
        compiled = build_plain(lower(imported, resolve_target("cpu")))
        found = compiled.open_here().run([one.contiguous().numpy() for one in inputs])
        row["tolerance"] = scores.least_tolerance(list(map(torch.from_numpy, found)), expected)
    except Exception as error:
        row["error"] = _line(error)
    finally:
        path.unlink(missing_ok=True)
    row["cpu_s"] = time.process_time() - began
    return {key: round(value, 3) if isinstance(value, float) else value for key, value in row.items()}


def _line(error: BaseException) -> str:
    return f"{type(error).__name__}: {reason_of(error)}"[:300]


if __name__ == "__main__":
    sys.exit(main())
