"""What a cut costs: three elementwise operators in TVM alone, and with the middle one left to ONNX Runtime.

    python benchmarks/cut_costs.py [--out FILE.json]

Uncut, they are one kernel. Cut, they are two kernels and a call of a session between them, which reads and
writes the tensors of the program in place; what the cut adds is the difference of both. Beside it, what
ONNX Runtime takes for the same operator by itself through its Python interface, copies included, and for all
three. All ran in turn on one core.
"""

import argparse
import json
import os
import tempfile
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import onnx
import onnxruntime
from onnx import helper

from against_onnxruntime import Pinned, core_list, machine
from tuneloom.backends.resolving import resolve_target
from tuneloom.compiler.fast_import import load_tvm
from tuneloom.tuners.tvm.importing.sources import import_model
from tuneloom.tuners.tvm.lowering.graph import lower
from tuneloom.tuners.tvm.models.compiling.building import build_model
from tuneloom.tuners.tvm.models.compiling.running import RunningModel
from tuneloom.tuners.tvm.models.rivals.turns import all_in_turn, warmed

SIZES = (64, 4096, 65_536, 1_048_576)
SECONDS = 4.0
OUT = Path("benchmarks/results/cut_costs.json")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--cores", type=core_list, help="which cores everything runs on, such as 2,3")
    parser.add_argument("--out", type=Path, default=OUT)
    options = parser.parse_args()
    if options.cores:
        os.sched_setaffinity(0, options.cores)
    os.environ |= {"TVM_NUM_THREADS": "1", "TVM_BIND_THREADS": "0"}
    rows = [measured(size) | machine() for size in SIZES]
    options.out.write_text(json.dumps(rows, indent=1) + "\n")


def measured(size: int) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as folder, Pinned(1):
        chain, middle = saved(Path(folder), size, ("a", "b", "y")), saved(Path(folder), size, ("y",))
        value = np.random.default_rng(1).standard_normal((size,)).astype(np.float32)
        tensor = load_tvm().runtime.tensor(value)
        whole, cut = running(chain, ()), running(chain, ("b",))
        sessions = [session(middle), session(chain)]
        runs = [
            lambda: whole.invoke([tensor]),
            lambda: cut.invoke([tensor]),
            *(lambda one=one: one.run(None, {"x": value}) for one in sessions),
        ]
        np.testing.assert_allclose(whole.run([value])[0], cut.run([value])[0], rtol=1e-6)
        for run in runs:
            warmed(run)
        seconds = [median(times) for times in all_in_turn(runs, SECONDS)]
    names = ("uncut_s", "cut_s", "onnxruntime_operator_s", "onnxruntime_all_s")
    row = {"numbers": size, **dict(zip(names, seconds, strict=True)), "added_s": seconds[1] - seconds[0]}
    print(json.dumps(row), flush=True)
    return row


def saved(folder: Path, size: int, names: tuple[str, ...]) -> str:
    """A chain of operators, each of which makes the value of this name, as a file."""
    nodes = [
        helper.make_node("LeakyRelu", [before], [after], alpha=0.5)
        for before, after in zip(("x", *names), names, strict=False)
    ]
    ends = [helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, (size,)) for name in ("x", "y")]
    graph = helper.make_graph(nodes, "chain", ends[:1], ends[1:])
    path = folder / f"{len(names)}.onnx"
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=10), path)
    return str(path)


def running(path: str, left: tuple[str, ...]) -> RunningModel:
    lowered = lower(import_model(path, left=left), resolve_target("cpu"))
    assert len(lowered.foreign) == len(left)
    return build_model(lowered, {}, guess=True).open_here()


def session(path: str) -> Any:
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    return onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])


if __name__ == "__main__":
    main()
