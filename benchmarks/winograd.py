"""3×3 convolutions on one core, directly and transformed: what `winograd.pays` is drawn from.

    python benchmarks/winograd.py [--core N] [--out FILE] [--again]

Every pair of channels and size of image is one network of a convolution and a ReLU between two pointwise
ones, with first guesses for all kernels. Both ways are compiled and their kernels timed. Rows are added to
--out; those that are there are skipped. With --again nothing is measured: rows are compared with the rule.
"""

import argparse
import json
import os
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np

import from_nothing  # noqa: F401
from sections.transforms import estimated
from tuneloom.app.farm.surveying import cpu_name
from tuneloom.backends.cpu.layouts.kernels import winograd
from tuneloom.backends.cpu.target import cpu_of
from tuneloom.backends.resolving import resolve_target
from tuneloom.compiler.lazy import relax
from tuneloom.model import TensorInfo
from tuneloom.tuners.tvm.importing.sources import ImportedModel
from tuneloom.tuners.tvm.lowering.graph import lower

RESULTS = Path(__file__).parent / "results" / "winograd.jsonl"
CHANNELS = ((16, 16), (32, 32), (64, 64), (128, 64), (128, 128), (256, 256), (512, 512), (32, 128), (192, 48))
SIZES = ((7, 7), (14, 14), (28, 28), (56, 56), (112, 112), (224, 224), (450, 160))
_MOST_PRODUCTS = 2.5e10
_MOVING = ("to_blocked", "from_blocked", "to_plain")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--core", type=int, default=1)
    parser.add_argument("--out", type=Path, default=RESULTS)
    parser.add_argument("--again", action="store_true", help="compare rows that are there")
    options = parser.parse_args()
    if not options.again:
        measure(options.out, options.core)
    for row in kept(options.out):
        print(told(row))


def measure(out: Path, core: int) -> None:
    os.environ |= {"TVM_NUM_THREADS": "1", "TVM_BIND_THREADS": "0"}
    os.sched_setaffinity(0, {core})
    target = cpu_of(resolve_target("cpu", cores=1))
    machine = {"cpu": cpu_name(), "lanes": target.lanes, "has_tiles": bool(target.tiles)}
    known = {(row["cpu"], row["inside"], row["outside"], *row["size"]) for row in kept(out)}
    for inside, outside in CHANNELS:
        for size in SIZES:
            if (cpu_name(), inside, outside, *size) in known:
                continue
            if 9 * inside * outside * size[0] * size[1] > _MOST_PRODUCTS:
                continue
            row = {**machine, "inside": inside, "outside": outside, "size": size}
            row |= {"direct_ms": timed(row, pays=False), "transformed_ms": timed(row, pays=True)}
            with out.open("a") as file:
                file.write(json.dumps(row) + "\n")
            print(told(row), flush=True)


def kept(out: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in out.read_text().splitlines()] if out.is_file() else []


def timed(row: dict[str, Any], pays: bool) -> float:
    """Milliseconds of all kernels that the convolution becomes, the best of three times."""
    import against_onnxruntime as networks

    def chosen(conv: Any, *_: Any) -> bool:
        return pays and conv.weight.shape[-1] == 3

    with patch.object(winograd, "pays", chosen):
        lowered = lower(network(row), resolve_target("cpu", cores=1))
    running = networks.guessed(lowered).running
    return 1e3 * min(_of_convolution(networks.kernel_rows(running, lowered)) for _ in range(3))


def _of_convolution(rows: list[dict[str, Any]]) -> float:
    """What the kernels take that are not pointwise convolutions, whose weights are 1×1."""
    return sum(float(one["total_s"]) for one in rows if not _is_beside(one))


def _is_beside(one: dict[str, Any]) -> bool:
    return "×1×1×" in one["shapes"].partition("→")[0].partition(", ")[2].partition(", ")[0] or any(
        name in one["name"] for name in _MOVING
    )


def network(row: dict[str, Any]) -> ImportedModel:
    generator = np.random.default_rng(0)

    def weight(out: int, inside: int, taps: int) -> Any:
        return relax.const(generator.normal(size=(out, inside, taps, taps)).astype(np.float32))

    shape = (1, row["inside"], *row["size"])
    builder, x = relax.BlockBuilder(), relax.Var("x", relax.TensorType(shape, "float32"))
    with builder.function("main", [x]):
        with builder.dataflow():
            y = x
            for inside, out, taps in (
                (row["inside"], row["inside"], 1),
                (row["inside"], row["outside"], 3),
                (row["outside"], row["outside"], 1),
            ):
                y = builder.emit(relax.op.nn.conv2d(y, weight(out, inside, taps), padding=taps // 2))
                y = builder.emit(relax.op.nn.relu(y))
            y = builder.emit_output(y)
        builder.emit_func_output(y)
    inputs = (TensorInfo(name="x", shape=shape, dtype="float32"),)
    return ImportedModel(name="conv", module=builder.get(), inputs=inputs, outputs=(), digest="conv")


def told(row: dict[str, Any]) -> str:
    ratio = row["transformed_ms"] / row["direct_ms"]
    return (
        f"{row['inside']:4} → {row['outside']:4}, {row['size'][0]:3}×{row['size'][1]:3}: "
        f"{row['direct_ms']:8.3f} ms, transformed {ratio:.2f}, estimated {estimated(row):.2f}"
    )


if __name__ == "__main__":
    main()
