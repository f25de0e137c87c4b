"""Networks people run against ONNX Runtime: whole models in turn, and where the time goes.

    python benchmarks/against_onnxruntime.py FILE.onnx… [zoo:NAME…] [--trials N] [--cores N]

With --trials 0 (the default) every kernel has its template's first guess, so that a
network takes seconds; else the network is tuned from an empty store first. Both
runtimes run in turn in one process on the same cores, with the same values. Below the
ratio stand the slowest kernels: their share, their rate, how much of the best
rate of a core that is and which kind of space they have, and the slowest nodes of ONNX Runtime's own
profile. Where OpenVINO is installed it takes its turn as well.
"""

import argparse
import json
import os
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime

from tuneloom.app.runs.service import RunSettings, tune
from tuneloom.model import Budget, JobSpec
from tuneloom.tuners.tvm.bundles.loading import load_bundle
from tuneloom.tuners.tvm.fast_import import load_tvm
from tuneloom.tuners.tvm.importing.sources import import_model
from tuneloom.tuners.tvm.layouts.matrices import panel_width, product
from tuneloom.tuners.tvm.lowering.graph import LoweredModel, lower
from tuneloom.tuners.tvm.lowering.tasks import extract, kernel_calls, kernel_key, kernel_module, unpack
from tuneloom.tuners.tvm.models.final import RunningModel, build_model
from tuneloom.tuners.tvm.models.stages import relative_difference, seeded_inputs
from tuneloom.tuners.tvm.models.times import kernel_times
from tuneloom.tuners.tvm.rules.generator import first_guess, has_template
from tuneloom.tuners.tvm.targets.target import TargetSpec, resolve_target
from tuneloom.tuners.tvm.zoo.listing import zoo_model

SHAPES: dict[str, dict[str, tuple[int, ...]]] = {
    "magika": {"bytes": (1, 2048)},
    "mtcnn_onet": {"input_3": (1, 48, 48, 3)},
    "mtcnn_pnet": {"input_1": (1, 120, 160, 3)},
    "mtcnn_rnet": {"input_2": (1, 24, 24, 3)},
    "ocr_cls": {"x": (1, 3, 48, 192)},
    "ocr_det": {"x": (1, 3, 320, 320)},
    "ocr_rec": {"x": (1, 3, 48, 320)},
}
"""What the open dimensions of known files are bound to."""
LEAST_ROUNDS, SECONDS = 15, 4.0
SHOWN = 12
QUIET = 0.2
"""Which quantile of the runs counts: on shared cores the slower half measures the neighbours."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """Both runtimes on one network; seconds of single runs, taken in turn."""

    model: str
    trials: int
    cores: int
    ours: list[float]
    theirs: list[float]
    openvino: list[float]
    difference: float
    kernels: list[dict[str, Any]]
    nodes: list[dict[str, Any]]

    @property
    def row(self) -> dict[str, Any]:
        ratios = np.divide(self.ours, self.theirs)
        ours, theirs = (float(np.quantile(one, QUIET)) for one in (self.ours, self.theirs))
        return {
            "model": self.model,
            "trials": self.trials,
            "cores": self.cores,
            "ours_s": ours,
            "onnxruntime_s": theirs,
            "ratio": ours / theirs,
            "median": float(np.median(ratios)),
            **self._against_openvino(ours),
            "spread": [float(q) for q in np.quantile(ratios, [0.1, 0.9])],
            "difference": self.difference,
            "kernels": self.kernels,
            "nodes": self.nodes,
        }

    def _against_openvino(self, ours: float) -> dict[str, float]:
        if not self.openvino:
            return {}
        seconds = float(np.quantile(self.openvino, QUIET))
        return {"openvino_s": seconds, "against_openvino": ours / seconds}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("models", nargs="+")
    parser.add_argument("--trials", type=int, default=0)
    parser.add_argument("--cores", type=int, default=1)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--brief", action="store_true", help="print the ratios only")
    parser.add_argument("--out", type=Path, help="keep the results in this file, beside those it has")
    options = parser.parse_args()
    peak = peak_gflops(resolve_target("cpu"))
    print(f"a small matrix product on one core: {peak:.1f} GFLOP/s")
    rows = [measured(model, options, peak) for model in options.models]
    good = [row["ratio"] for row in rows if row is not None]
    print(f"geometric mean of {len(good)}: {np.exp(np.mean(np.log(good))):.2f}")


def measured(model: str, options: Any, peak: float) -> dict[str, Any] | None:
    try:
        row = compare(model, options).row
    except Exception as error:  # one network that can't be compared must not end the others
        print(f"{name_of(model)}: {type(error).__name__}: {str(error).strip().splitlines()[-1][:200]}")
        return None
    show(row, peak * options.cores, brief=options.brief)
    if options.out:
        keep(options.out, row)
    return row


def compare(model: str, options: Any) -> Comparison:
    """Compile or tune one network, then run it and ONNX Runtime in turn."""
    name = name_of(model)
    lowered = lower(import_model(model, SHAPES.get(name)), resolve_target("cpu", cores=options.cores))
    with tempfile.TemporaryDirectory() as folder:
        if options.trials:
            running = tuned(model, options, Path(folder))
        else:
            running = build_model(lowered, {}, guess=True).open()
        # The one that is timed has no profiler, which would slow it down.
        session, profiled = peer(model, options.cores), peer(model, options.cores, Path(folder))
        with Pinned(options.cores):
            ours, theirs, third, difference = in_turn(
                running, session, openvino_peer(model, options.cores, lowered), lowered
            )
            kernels = kernel_rows(running, lowered)
            nodes = node_rows(profiled, lowered)
    return Comparison(
        model=name,
        trials=options.trials,
        cores=options.cores,
        ours=ours,
        theirs=theirs,
        openvino=third,
        difference=difference,
        kernels=kernels,
        nodes=nodes,
    )


def tuned(model: str, options: Any, folder: Path) -> RunningModel:
    spec = JobSpec(
        name=name_of(model),
        model=model,
        shapes=SHAPES.get(name_of(model), {}),
        budget=Budget(trials=options.trials),
        seed=options.seed,
        out=str(folder / "bundle"),
    )
    settings = RunSettings(store=str(folder / "store.db"), device_cores=options.cores)
    outcome = tune([spec], settings, "benchmarks/against_onnxruntime.py")
    if outcome.failure is not None:
        raise outcome.failure
    return load_bundle(folder / "bundle").model


class Pinned:
    """The last cores, for this process, while inside."""

    def __init__(self, cores: int) -> None:
        self._all = os.sched_getaffinity(0)
        self._last = set(sorted(self._all)[-cores:])

    def __enter__(self) -> None:
        os.sched_setaffinity(0, self._last)

    def __exit__(self, *_: object) -> None:
        os.sched_setaffinity(0, self._all)


def peer(model: str, cores: int, profile: Path | None = None) -> Any:
    """An ONNX Runtime session, made on the cores that it will use; with a folder, it profiles into that."""
    settings = onnxruntime.SessionOptions()
    settings.intra_op_num_threads, settings.inter_op_num_threads = cores, 1
    if profile is not None:
        settings.enable_profiling = True
        settings.profile_file_prefix = str(profile / "profile")
    settings.log_severity_level = 3
    with Pinned(cores):
        return onnxruntime.InferenceSession(source_of(model), settings, providers=["CPUExecutionProvider"])


def openvino_peer(model: str, cores: int, lowered: LoweredModel) -> Callable[[], Any] | None:
    """One run in OpenVINO; nothing where it is not installed or does not take the model."""
    try:
        import openvino
    except ImportError:
        return None
    core = openvino.Core()
    try:
        read = core.read_model(source_of(model))
        read.reshape({info.name: list(info.shape) for info in lowered.inputs})
        settings = {"INFERENCE_NUM_THREADS": cores, "NUM_STREAMS": 1, "INFERENCE_PRECISION_HINT": "f32"}
        request = core.compile_model(read, "CPU", settings).create_infer_request()
    except RuntimeError as error:
        print(f"{name_of(model)}: OpenVINO: {str(error).strip().splitlines()[-1][:200]}")
        return None
    feeds = feeds_of(lowered)
    return lambda: request.infer(feeds)


def in_turn(
    running: RunningModel, session: Any, third: Callable[[], Any] | None, lowered: LoweredModel
) -> tuple[list[float], list[float], list[float], float]:
    values = seeded_inputs(lowered.inputs, seed=1)
    feeds = feeds_of(lowered)
    tensors = [load_tvm().runtime.tensor(value) for value in values]
    difference = max(map(relative_difference, running.run(values), session.run(None, feeds)))
    ours: list[float] = []
    theirs: list[float] = []
    openvino: list[float] = []
    ended = time.perf_counter() + SECONDS
    while len(ours) < LEAST_ROUNDS or time.perf_counter() < ended:
        ours.append(timed(lambda: running.invoke(tensors)))
        theirs.append(timed(lambda: session.run(None, feeds)))
        if third is not None:
            openvino.append(timed(third))
    return ours, theirs, openvino, difference


def source_of(model: str) -> Any:
    """What other runtimes read: a file, or the bytes of a network of the zoo."""
    return zoo_model(model.removeprefix("zoo:")).SerializeToString() if model.startswith("zoo:") else model


def timed(work: Callable[[], Any]) -> float:
    started = time.perf_counter()
    work()
    return time.perf_counter() - started


def kernel_rows(running: RunningModel, lowered: LoweredModel) -> list[dict[str, Any]]:
    """Every kernel with its time in the model, the slowest first."""
    tasks = {task.key: task for task in extract(lowered)}
    calls = kernel_calls(lowered.module)
    rows = []
    for name, seconds in kernel_times(running, seeded_inputs(lowered.inputs, 1)).items():
        task = tasks.get(kernel_key(lowered.module[name], lowered.target)) if name in calls else None
        if task is None:
            continue
        rows.append(
            {
                "name": name,
                "calls": calls[name],
                "total_s": calls[name] * seconds,
                "gflops": task.gflop / seconds,
                "template": has_template(unpack(task).module, lowered.target),
                "shapes": task.shapes,
            }
        )
    return sorted(rows, key=lambda row: -float(row["total_s"]))


def feeds_of(lowered: LoweredModel) -> dict[str, Any]:
    """The inputs of the comparison, by name."""
    values = seeded_inputs(lowered.inputs, seed=1)
    return {info.name: value for info, value in zip(lowered.inputs, values, strict=True)}


def node_rows(session: Any, lowered: LoweredModel) -> list[dict[str, Any]]:
    """ONNX Runtime's own least time of every node, the slowest first."""
    for _ in range(LEAST_ROUNDS):
        session.run(None, feeds_of(lowered))
    events = json.loads(Path(session.end_profiling()).read_text())
    best: dict[tuple[str, str], float] = {}
    for event in events:
        if event.get("cat") == "Node" and str(event["name"]).endswith("_kernel_time"):
            key = (str(event["name"]).removesuffix("_kernel_time"), str(event["args"].get("op_name", "")))
            best[key] = min(best.get(key, float("inf")), event["dur"] / 1e6)
    rows = [{"name": name, "kind": kind, "total_s": seconds} for (name, kind), seconds in best.items()]
    return sorted(rows, key=lambda row: -float(str(row["total_s"])))


def peak_gflops(target: TargetSpec) -> float:
    """What one core does at best: a product of small matrices, nothing but its first cache involved."""
    tvm = load_tvm()
    from tvm import te

    rows = columns = inner = 48
    panel = panel_width(rows, columns, target.lanes)
    shapes = ((rows, inner), (columns // panel, inner, panel), (rows, columns))
    left, right = (te.placeholder(shape) for shape in shapes[:2])
    function = te.create_prim_func([left, right, product(left, right, columns)])
    scheduled = first_guess(kernel_module(function), target)
    assert scheduled is not None
    with target.to_tvm() as made:
        built = tvm.tirx.build(scheduled.mod, target=made)
    arguments = [tvm.runtime.tensor(np.ones(shape, np.float32)) for shape in shapes]
    evaluate = built.time_evaluator("main", tvm.cpu(), number=20, repeat=99)
    return 2e-9 * rows * columns * inner / min(evaluate(*arguments).results)


def show(row: dict[str, Any], peak: float, *, brief: bool) -> None:
    low, high = row["spread"]
    print(
        f"{row['model']}: ours {row['ours_s'] * 1e3:.2f} ms, "
        f"ONNX Runtime {row['onnxruntime_s'] * 1e3:.2f} ms, "
        f"ratio {row['ratio']:.2f} ({low:.2f}–{high:.2f}), {row['trials']} trials, {row['cores']} cores, "
        f"outputs differ by {row['difference']:.1e}"
        + (f", against OpenVINO {row['against_openvino']:.2f}" if "against_openvino" in row else ""),
        flush=True,
    )
    if brief:
        return
    whole = sum(kernel["total_s"] for kernel in row["kernels"]) or 1.0
    for kernel in row["kernels"][:SHOWN]:
        space = "template" if kernel["template"] else "general"
        print(
            f"  {kernel['total_s'] * 1e3:8.3f} ms {kernel['total_s'] / whole:4.0%} ×{kernel['calls']:<3d}"
            f"{kernel['gflops']:6.1f} GFLOP/s {kernel['gflops'] / peak:4.0%}  {space:8s} "
            f"{kernel['name'][:60]} [{kernel['shapes'][:90]}]"
        )
    kinds: dict[str, float] = {}
    for node in row["nodes"]:
        kinds[node["kind"]] = kinds.get(node["kind"], 0.0) + node["total_s"]
    largest = sorted(kinds.items(), key=lambda pair: -pair[1])[:8]
    print(
        "  ONNX Runtime: " + ", ".join(f"{kind} {seconds * 1e3:.2f}" for kind, seconds in largest), flush=True
    )


def keep(path: Path, row: dict[str, Any]) -> None:
    """Put a row into a results file, in place of an older one of the same kind."""
    known = json.loads(path.read_text()) if path.exists() else []
    identity = ("model", "trials", "cores")
    others = [one for one in known if any(one[key] != row[key] for key in identity)]
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps([*others, row], indent=1) + "\n")


def name_of(model: str) -> str:
    return model.removeprefix("zoo:") if model.startswith("zoo:") else Path(model).stem


if __name__ == "__main__":
    main()
