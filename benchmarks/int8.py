"""Networks in int8 against ONNX Runtime in int8, both calibrated on the same samples.

    python benchmarks/int8.py FILE.onnx… [zoo:NAME…] [--imported] [--trials N] [--cores 2,3] [--out FILE.json]

ONNX Runtime gets what its own tools make: `quantize_static` with pairs of conversions (QDQ), weights
with a scale for each channel. Ours is tuned with so many trials, or with 0 has the first guess of every
template. Both run in turn on one core, and so do both in float32. Samples are seeded noise, which says
nothing about accuracy on real data: how far outputs are off is shown for both, relative to the model in
float32. With --imported, ours is made of the very file that ONNX Runtime runs, and both should be equally far
off. A network that the file has already is skipped.
"""

import argparse
import os
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnx.version_converter
import onnxruntime
from onnxruntime.quantization import CalibrationDataReader, QuantFormat, QuantType, quantize_static
from onnxruntime.quantization.shape_inference import quant_pre_process

import from_nothing  # noqa: F401
from against_onnxruntime import SHAPES, Pinned, core_list, keep, machine, name_of, peer, rows_of, running
from tuneloom.app.runs.executing.in_process import tune
from tuneloom.app.runs.settings import RunSettings
from tuneloom.backends.resolving import resolve_target
from tuneloom.compiler.fast_import import load_tvm
from tuneloom.compiler.target import TargetSpec
from tuneloom.model import Budget, JobSpec
from tuneloom.tuners.tvm.bundles.loading import load_bundle
from tuneloom.tuners.tvm.importing.sources import ImportedModel, import_model
from tuneloom.tuners.tvm.lowering.graph import lower
from tuneloom.tuners.tvm.models.compiling.building import build_model
from tuneloom.tuners.tvm.models.compiling.differences import relative_difference
from tuneloom.tuners.tvm.models.compiling.running import RunningModel
from tuneloom.tuners.tvm.models.precision.calibrating import Quantising, quantise
from tuneloom.tuners.tvm.models.precision.samples import seeded_inputs
from tuneloom.tuners.tvm.models.rivals.turns import all_in_turn
from tuneloom.tuners.tvm.zoo.listing import zoo_model

SAMPLES = 4
WRITTEN = "int8.onnx"
"""What ONNX Runtime's tools write."""
ANY = 10.0
"""Noise is no data: how far outputs are off is shown, not judged."""
SECONDS = 4.0
QUIET = 0.2
PER_CHANNEL = 13
"""The first version of ONNX's operators in which a weight may have a scale for each channel."""
CONSTANT_WEIGHTS = 8
"""A version of ONNX's files in which weights need not be inputs."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("models", nargs="+")
    parser.add_argument("--imported", action="store_true", help="import what ONNX Runtime's tools made")
    parser.add_argument("--trials", type=int, default=0)
    parser.add_argument("--seconds", type=float, help="stop tuning a network after so long")
    parser.add_argument("--cores", type=core_list, help="which cores everything runs on, such as 2,3")
    parser.add_argument("--out", type=Path, default=Path("benchmarks/results/int8.json"))
    options = parser.parse_args()
    if options.cores:
        os.sched_setaffinity(0, options.cores)
    os.environ |= {"TVM_NUM_THREADS": "1", "TVM_BIND_THREADS": "0"}
    known = {(row["model"], row["trials"], row.get("imported", False)) for row in rows_of(options.out)}
    for model in options.models:
        if (name_of(model), options.trials, options.imported) not in known:
            attempt(model, options)


def attempt(model: str, options: Any) -> None:
    """One network; one that can't be compared must not end the others."""
    try:
        row = compared(model, options) | machine()
    except Exception as error:
        print(
            f"{name_of(model)}: {type(error).__name__}: {str(error).strip().splitlines()[-1][:200]}",
            flush=True,
        )
        return
    keep(options.out, row)
    words = {key: f"{value:.3g}" for key, value in row.items() if isinstance(value, float)}
    print(row["model"], row["trials"], words, flush=True)


def compared(model: str, options: Any) -> dict[str, Any]:
    target, imported = resolve_target("cpu"), import_model(model, SHAPES.get(name_of(model)))
    values = seeded_inputs(imported.inputs, seed=1)
    with tempfile.TemporaryDirectory() as text:
        folder = Path(text)
        samples = written_samples(imported, folder)
        session, theirs_single = theirs(model, imported, samples, folder), peer(model, 1)
        ours = made(model, imported, target, samples, options, folder)
        single = build_model(lower(imported, target), {}, guess=True).open_here()
        feeds = {info.name: value for info, value in zip(imported.inputs, values, strict=True)}
        tensors = [load_tvm().runtime.tensor(value) for value in values]
        with Pinned(1):
            expected = theirs_single.run(None, feeds)
            off = max(map(relative_difference, ours.run(values), expected))
            off_theirs = max(map(relative_difference, session.run(None, feeds), expected))
            times = in_turn(
                {
                    "ours_s": lambda: ours.invoke(tensors),
                    "onnxruntime_s": lambda: session.run(None, feeds),
                    "ours_float32_s": lambda: single.invoke(tensors),
                    "onnxruntime_float32_s": lambda: theirs_single.run(None, feeds),
                }
            )
    seconds = {side: float(np.quantile(found, QUIET)) for side, found in times.items()}
    ratios = np.divide(times["ours_s"], times["onnxruntime_s"])
    return {
        "model": name_of(model),
        "trials": options.trials,
        "imported": options.imported,
        "cores": 1,
        **seconds,
        "ratio": seconds["ours_s"] / seconds["onnxruntime_s"],
        "spread": [float(q) for q in np.quantile(ratios, [0.1, 0.9])],
        "difference": off,
        "onnxruntime_difference": off_theirs,
    }


def written_samples(imported: ImportedModel, folder: Path) -> str:
    """An archive with seeded noise, the values that are timed among it."""
    found = [seeded_inputs(imported.inputs, seed=1 + n) for n in range(SAMPLES)]
    path = folder / "samples.npz"
    arrays: dict[str, Any] = {
        info.name: np.concatenate([one[place] for one in found]) for place, info in enumerate(imported.inputs)
    }
    np.savez(path, **arrays)
    return str(path)


def made(
    model: str, imported: ImportedModel, target: TargetSpec, samples: str, options: Any, folder: Path
) -> RunningModel:
    """Ours: quantised by `--dtype int8`, or imported as ONNX Runtime's tools wrote it."""
    if not options.imported:
        return (
            tuned(model, samples, options, folder) if options.trials else guessed(imported, target, samples)
        )
    if options.trials:
        return tuned(str(folder / WRITTEN), "", options, folder)
    whole = import_model(str(folder / WRITTEN), only_tvm=True)
    return build_model(lower(whole, target), {}, guess=True).open_here()


def guessed(imported: ImportedModel, target: TargetSpec, samples: str) -> RunningModel:
    found = quantise(imported, target, Quantising(samples=samples, tolerance=ANY))
    return build_model(lower(found.model, target), {}, guess=True).open_here()


def tuned(model: str, samples: str, options: Any, folder: Path) -> RunningModel:
    spec = JobSpec(
        name=name_of(model),
        model=model,
        shapes=SHAPES.get(name_of(model), {}),
        budget=Budget(trials=options.trials, seconds=options.seconds),
        dtype="int8" if samples else "float32",
        samples=samples,
        tolerance=ANY,
        only_tvm=True,
        out=str(folder / "bundle"),
    )
    outcome = tune([spec], RunSettings(store=str(folder / "store.db")), "benchmarks/int8.py")
    if outcome.failure is not None:
        raise outcome.failure
    return running(load_bundle(folder / "bundle").model)


def theirs(model: str, imported: ImportedModel, samples: str, folder: Path) -> Any:
    """ONNX Runtime's own int8 of the model: for x86 data without a sign, as its documentation advises."""
    path = folder / "float.onnx"
    proto = zoo_model(model.removeprefix("zoo:")) if model.startswith("zoo:") else onnx.load(model)
    onnx.save(modern(proto), path)
    # Batch norms go into convolutions, or they would be computed in floats between them.
    quant_pre_process(str(path), str(folder / "prepared.onnx"), skip_symbolic_shape=True)
    unsigned = os.uname().machine == "x86_64"
    quantize_static(
        folder / "prepared.onnx",
        folder / WRITTEN,
        Reader(samples, [info.name for info in imported.inputs]),
        quant_format=QuantFormat.QDQ,
        per_channel=True,
        activation_type=QuantType.QUInt8 if unsigned else QuantType.QInt8,
        weight_type=QuantType.QInt8,
    )
    return peer(str(folder / WRITTEN), 1)


def modern(proto: Any) -> Any:
    """The model with operators that have scales for each channel, its weights as constants.

    Files of old versions list their weights among their inputs, where nothing may be folded into them.
    """
    given = {tensor.name for tensor in proto.graph.initializer}
    inputs = [value for value in proto.graph.input if value.name not in given]
    versions = [one.version for one in proto.opset_import if one.domain in ("", "ai.onnx")]
    if min(versions) < PER_CHANNEL:
        proto = onnx.version_converter.convert_version(proto, PER_CHANNEL)
    del proto.graph.input[:]
    proto.graph.input.extend(inputs)
    proto.ir_version = max(proto.ir_version, CONSTANT_WEIGHTS)
    return proto


class Reader(CalibrationDataReader):  # type: ignore[misc]
    """Hands the samples of an archive to ONNX Runtime's calibration."""

    def __init__(self, path: str, names: Sequence[str]) -> None:
        with np.load(path) as stored:
            values = {name: np.split(stored[name], SAMPLES) for name in names}
        self._rows: Iterator[dict[str, Any]] = iter(
            [{name: values[name][n] for name in names} for n in range(SAMPLES)]
        )

    def get_next(self) -> dict[str, Any] | None:
        return next(self._rows, None)


def in_turn(sides: Mapping[str, Callable[[], Any]]) -> dict[str, list[float]]:
    return dict(zip(sides, all_in_turn(list(sides.values()), SECONDS), strict=True))


if __name__ == "__main__":
    onnxruntime.set_default_logger_severity(3)
    main()
