"""Networks people run against ONNX Runtime: whole models in turn, and where the time goes.

    python benchmarks/against_onnxruntime.py FILE.onnx… [zoo:NAME…] [--trials N] [--device-cores N]
        [--cores 2,3] [--limit SECONDS] [--lane-limit SECONDS] [--out LANE.json] [--only-tvm] [--no-openvino]

Several of these may run at once, each a lane with cores of its own (--cores) and a file of its own
(--out); benchmarks/merge_lanes.py joins the files. Every network has a process of its own. What the file has
already is skipped, so that a lane that was ended goes on where it was. A network that takes longer
than --limit is given up; tuning gets 60 % of that, and the row tells how many trials were made.

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
import platform
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime

import from_nothing  # noqa: F401
from tuneloom.app.runs.executing.in_process import tune
from tuneloom.app.runs.settings import RunSettings
from tuneloom.backends.cpu.layouts.shapes.matrices import panel_width, product
from tuneloom.backends.cpu.target import CpuTarget
from tuneloom.backends.cpu.templates.generator import first_guess, has_template
from tuneloom.backends.resolving import resolve_target
from tuneloom.compiler.fast_import import load_tvm
from tuneloom.compiler.target import TargetSpec
from tuneloom.model import Budget, JobSpec
from tuneloom.tuners.tvm.bundles.loading import load_bundle
from tuneloom.tuners.tvm.importing.sources import import_model
from tuneloom.tuners.tvm.lowering.graph import LoweredModel, lower
from tuneloom.tuners.tvm.lowering.tasks import extract, kernel_calls, kernel_key, kernel_module, unpack
from tuneloom.tuners.tvm.models.compiling.building import build_model
from tuneloom.tuners.tvm.models.compiling.differences import relative_difference
from tuneloom.tuners.tvm.models.compiling.kernel_times import kernel_times
from tuneloom.tuners.tvm.models.compiling.running import OpenModel, RunningModel
from tuneloom.tuners.tvm.models.precision.samples import seeded_inputs
from tuneloom.tuners.tvm.models.rivals.turns import all_in_turn
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
WORTHWHILE = 0.5
"""Which part of its time must be left for a network to be begun: one that is tuned less means little."""
TUNING = 0.6
"""Which part of a network's time is for tuning."""
SHOWN = 12
AT_END = ("own_runtime", "left_to_onnxruntime", "not_left_to_onnxruntime", "notes")
"""What of a job's result tells how it chose between the runtimes."""
IDENTITY = ("model", "trials", "cores")
"""What tells rows of a results file apart."""
QUIET = 0.2
"""Which quantile of the runs counts: on shared cores the slower half measures the neighbours."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """Both runtimes on one network; seconds of single runs, taken in turn."""

    model: str
    trials: int
    trials_made: int
    cores: int
    times: dict[str, list[float]]
    difference: float
    left: str | None
    """What the bundle leaves to ONNX Runtime: nothing (""), "whole" or "parts"; None if it had no choice."""
    at_end: dict[str, Any]
    """What the job itself found when it chose: times of both runtimes, what was tried, what failed."""
    kernels: list[dict[str, Any]]
    nodes: list[dict[str, Any]]

    @property
    def row(self) -> dict[str, Any]:
        ratios = np.divide(self.times["ours"], self.times["theirs"])
        ours, theirs = self._quiet("ours"), self._quiet("theirs")
        return {
            "model": self.model,
            "trials": self.trials,
            "trials_made": self.trials_made,
            "cores": self.cores,
            "ours_s": ours,
            "onnxruntime_s": theirs,
            "ratio": ours / theirs,
            "median": float(np.median(ratios)),
            **self._chosen(ours, theirs),
            **self._against_openvino(ours),
            "spread": [float(q) for q in np.quantile(ratios, [0.1, 0.9])],
            "difference": self.difference,
            "at_end": self.at_end,
            "kernels": self.kernels[:SHOWN],
            "nodes": self.nodes[:SHOWN],
            "kinds_s": self._kinds(),
        }

    def _kinds(self) -> dict[str, float]:
        """Seconds of ONNX Runtime by kind of operator, the largest first."""
        kinds: dict[str, float] = {}
        for node in self.nodes:
            kinds[node["kind"]] = kinds.get(node["kind"], 0.0) + node["total_s"]
        return dict(sorted(kinds.items(), key=lambda pair: -pair[1]))

    def _quiet(self, side: str) -> float:
        return float(np.quantile(self.times[side], QUIET))

    def _chosen(self, ours: float, theirs: float) -> dict[str, Any]:
        """The bundle, which may leave the model or parts of it to ONNX Runtime; nothing if it could not."""
        if self.left is None:
            return {}
        seconds = self._quiet("bundle") if self.left else ours
        return {"chosen_s": seconds, "chosen_ratio": seconds / theirs, "left": self.left}

    def _against_openvino(self, ours: float) -> dict[str, float]:
        if "openvino" not in self.times:
            return {}
        seconds = self._quiet("openvino")
        return {"openvino_s": seconds, "against_openvino": ours / seconds}


def main() -> None:
    options = parsed()
    if options.cores:
        os.sched_setaffinity(0, options.cores)
    if options.alone:
        alone(options)
        return
    ends = time.monotonic() + options.lane_limit
    for model in options.models:
        if options.out and known(options.out, name_of(model), options):
            print(f"{name_of(model)}: in {options.out} already", flush=True)
        elif (left := ends - time.monotonic()) >= WORTHWHILE * min(options.limit, options.lane_limit):
            in_own_process(model, min(options.limit, left))
        else:
            print(f"{name_of(model)}: no time left", flush=True)


def parsed() -> Any:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("models", nargs="+")
    parser.add_argument("--trials", type=int, default=0)
    parser.add_argument("--device-cores", type=int, default=1, help="how many cores a run may use")
    parser.add_argument("--cores", type=core_list, help="which cores everything runs on, such as 2,3")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--seconds", type=float, help="of tuning at most; 60 %% of --limit unless given")
    parser.add_argument("--limit", type=float, default=float("inf"), help="seconds for one network")
    parser.add_argument("--lane-limit", type=float, default=float("inf"), help="seconds for all of them")
    parser.add_argument("--only-tvm", action="store_true", help="leave nothing to ONNX Runtime in bundles")
    parser.add_argument("--no-openvino", action="store_true", help="compare with ONNX Runtime only")
    parser.add_argument("--brief", action="store_true", help="print the ratios only")
    parser.add_argument("--out", type=Path, help="keep the results in this file, beside those it has")
    parser.add_argument("--alone", action="store_true", help=argparse.SUPPRESS)
    return parser.parse_args()


def core_list(text: str) -> set[int]:
    return {int(word) for word in text.split(",")}


def in_own_process(model: str, limit_s: float) -> None:
    """Compare one network in a process with all arguments of this one; end it when its time is over."""
    others = [word for word in sys.argv[1:] if not is_model(word)]
    command = [sys.executable, __file__, *others, "--alone", "--limit", str(limit_s), model]
    ended_after(command, name_of(model), limit_s)


def ended_after(command: list[str], name: str, limit_s: float) -> None:
    """Run a program until it ends or its time is over."""
    child = subprocess.Popen(command, start_new_session=True)
    try:
        child.wait(None if limit_s == float("inf") else limit_s)
    except subprocess.TimeoutExpired:
        print(f"{name}: not done after {limit_s:.0f} s", flush=True)
    finally:
        if child.poll() is None:
            os.killpg(child.pid, signal.SIGKILL)  # its workers die with it
            child.wait()


def is_model(word: str) -> bool:
    return word.startswith("zoo:") or Path(word).suffix in (".onnx", ".pt2", ".tflite")


def alone(options: Any) -> None:
    os.environ |= {"TVM_NUM_THREADS": str(options.device_cores), "TVM_BIND_THREADS": "0"}
    (model,) = options.models
    started = time.monotonic()
    try:
        row = compare(model, options).row | machine()
    except Exception as error:  # one line for a network that can't be compared; the lane goes on
        print(f"{name_of(model)}: {type(error).__name__}: {str(error).strip().splitlines()[-1][:200]}")
        sys.exit(1)
    row["minutes"] = (time.monotonic() - started) / 60
    peak = 0.0 if options.brief else options.device_cores * peak_gflops(on_cpu(resolve_target("cpu")))
    show(row, peak, brief=options.brief)
    if options.out:
        keep(options.out, row)


def machine() -> dict[str, str]:
    """Which CPU it was, and which state of the source, as far as they can be known."""
    lines = Path("/proc/cpuinfo").read_text().splitlines()
    named = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    words = ["git", "-C", str(Path(__file__).parent), "rev-parse", "--short", "HEAD"]
    commit = subprocess.run(words, capture_output=True, text=True, check=False).stdout.strip()
    return {"cpu": named[0] if named else platform.machine(), "commit": commit}


def compare(model: str, options: Any) -> Comparison:
    """Compile or tune one network, then run it and ONNX Runtime in turn."""
    name = name_of(model)
    lowered = lower(import_model(model, SHAPES.get(name)), resolve_target("cpu", cores=options.device_cores))
    with tempfile.TemporaryDirectory() as folder:
        made = tuned(model, options, Path(folder), lowered) if options.trials else guessed(lowered)
        # The one that is timed has no profiler, which would slow it down.
        session, profiled = peer(model, options.device_cores), peer(model, options.device_cores, Path(folder))
        with Pinned(options.device_cores):
            openvino = None if options.no_openvino else openvino_peer(model, options.device_cores, lowered)
            times, difference = in_turn(made, session, openvino, lowered)
            kernels = kernel_rows(made.running, lowered)
            nodes = node_rows(profiled, lowered)
    return Comparison(
        model=name,
        trials=options.trials,
        trials_made=made.trials,
        cores=options.device_cores,
        times=times,
        difference=difference,
        left=made.left,
        at_end=made.at_end,
        kernels=kernels,
        nodes=nodes,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Made:
    """A network compiled by TVM alone, and its bundle where that leaves something to ONNX Runtime."""

    running: RunningModel
    trials: int = 0
    bundle: OpenModel | None = None
    left: str | None = None
    at_end: dict[str, Any] = field(default_factory=dict)
    finish_s: float = 0.0
    """From the last trial to the bundle."""
    job_s: float = 0.0


def guessed(lowered: LoweredModel) -> Made:
    """The network with every kernel as its template guesses first."""
    return Made(running=build_model(lowered, {}, guess=True).open_here())


def tuned(model: str, options: Any, folder: Path, lowered: LoweredModel) -> Made:
    """The network tuned from an empty store."""
    seconds = options.seconds or (TUNING * options.limit if options.limit < float("inf") else None)
    spec = JobSpec(
        name=name_of(model),
        model=model,
        shapes=SHAPES.get(name_of(model), {}),
        budget=Budget(trials=options.trials, seconds=seconds),
        seed=options.seed,
        only_tvm=options.only_tvm,
        out=str(folder / "bundle"),
    )
    settings = RunSettings(store=str(folder / "store.db"), device_cores=options.device_cores)
    moments = [time.monotonic()]
    outcome = tune(
        [spec],
        settings,
        "benchmarks/against_onnxruntime.py",
        on_trial=lambda *_: moments.append(time.monotonic()),
    )
    ended = time.monotonic()
    took: dict[str, Any] = {"finish_s": ended - moments[-1], "job_s": ended - moments[0]}
    if outcome.failure is not None:
        raise outcome.failure
    result, bundle = outcome.jobs[0].result, load_bundle(folder / "bundle").model
    trials, left = int(result["trials"]), result.get("left_to_onnxruntime")
    at_end = {key: result[key] for key in AT_END if key in result}
    at_end.get("own_runtime", {}).pop("latencies_s", None)
    if left is None:
        assert isinstance(bundle, RunningModel)
        words = None if options.only_tvm else ""
        return Made(running=bundle, trials=trials, left=words, at_end=at_end, **took)
    used = json.loads((folder / "bundle" / "schedules.json").read_text())
    alone = build_model(lowered, {row["task"]: row["trace"] for row in used}, guess=True)
    words = "whole" if left["whole"] else "parts"
    return Made(running=alone.open_here(), trials=trials, bundle=bundle, left=words, at_end=at_end, **took)


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
    made: Made, session: Any, third: Callable[[], Any] | None, lowered: LoweredModel
) -> tuple[dict[str, list[float]], float]:
    """Seconds of single runs by side, and how far the outputs of ours and ONNX Runtime differ."""
    values = seeded_inputs(lowered.inputs, seed=1)
    feeds = feeds_of(lowered)
    tensors = [load_tvm().runtime.tensor(value) for value in values]
    difference = max(map(relative_difference, made.running.run(values), session.run(None, feeds)))
    sides: dict[str, Callable[[], Any]] = {
        "ours": lambda: made.running.invoke(tensors),
        "theirs": lambda: session.run(None, feeds),
    }
    if third is not None:
        sides["openvino"] = third
    if (bundle := made.bundle) is not None:
        bundle.run(values)
        sides["bundle"] = bundle.timer(values)
    times = dict(zip(sides, all_in_turn(list(sides.values()), SECONDS), strict=True))
    return times, difference


def source_of(model: str) -> Any:
    """What other runtimes read: a file, or the bytes of a network of the zoo."""
    return zoo_model(model.removeprefix("zoo:")).SerializeToString() if model.startswith("zoo:") else model


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
                "template": has_template(unpack(task).module, on_cpu(lowered.target)),
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


def on_cpu(target: TargetSpec) -> CpuTarget:
    """A target of this comparison, which is always a CPU."""
    assert isinstance(target, CpuTarget)
    return target


def running(model: OpenModel) -> RunningModel:
    """A model of this comparison, which always runs in this process."""
    assert isinstance(model, RunningModel)
    return model


def peak_gflops(target: CpuTarget) -> float:
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
    return float(2e-9 * rows * columns * inner / min(evaluate(*arguments).results))


def show(row: dict[str, Any], peak: float, *, brief: bool) -> None:
    low, high = row["spread"]
    print(
        f"{row['model']}: ours {row['ours_s'] * 1e3:.2f} ms, "
        f"ONNX Runtime {row['onnxruntime_s'] * 1e3:.2f} ms, "
        f"ratio {row['ratio']:.2f} ({low:.2f}–{high:.2f}), "
        f"{row['trials_made']} trials, {row['cores']} cores, {row['minutes']:.1f} minutes, "
        f"outputs differ by {row['difference']:.1e}"
        + (f", bundle {row['chosen_ratio']:.2f} ({row['left']} left there)" if row.get("left") else "")
        + ("".join(f", note: {note}" for note in row["at_end"].get("notes", ())))
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
    largest = list(row["kinds_s"].items())[:8]
    print(
        "  ONNX Runtime: " + ", ".join(f"{kind} {seconds * 1e3:.2f}" for kind, seconds in largest), flush=True
    )


def keep(path: Path, row: dict[str, Any]) -> None:
    """Put a row into a results file, in place of an older one of the same kind; all of it or nothing."""
    others = [one for one in rows_of(path) if any(one[key] != row[key] for key in IDENTITY)]
    path.parent.mkdir(parents=True, exist_ok=True)
    new = path.with_name(f"{path.name}.new")
    new.write_text(json.dumps([*others, row], indent=1) + "\n")
    new.replace(path)


def known(path: Path, name: str, options: Any) -> bool:
    """Whether a results file has the row already."""
    wanted = (name, options.trials, options.device_cores)
    return any(tuple(row[key] for key in IDENTITY) == wanted for row in rows_of(path))


def rows_of(path: Path) -> list[dict[str, Any]]:
    """The rows of a results file; none if it is not there."""
    rows: list[dict[str, Any]] = json.loads(path.read_text()) if path.exists() else []
    return rows


def name_of(model: str) -> str:
    return model.removeprefix("zoo:") if model.startswith("zoo:") else Path(model).stem


if __name__ == "__main__":
    main()
