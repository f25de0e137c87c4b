"""Loops without a schedule compute what they say: the untuned model is what tuned ones are compared with."""

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from tuneloom.backends.resolving import resolve_target
from tuneloom.tuners.tvm.importing.sources import import_model
from tuneloom.tuners.tvm.lowering.graph import lower
from tuneloom.tuners.tvm.models.compiling.building import build_model, build_plain

TILED = [
    ((2, 3, 4, 5), (7, 6, 4, 2)),
    ((8, 3, 4), (8, 4, 8)),
    ((16, 2, 8), (6, 4, 6)),
    ((3, 5, 2), (2, 3, 16)),
    ((1, 3, 8, 1), (6, 3, 2, 2)),
]


def tile(shape: tuple[int, ...], repeats: tuple[int, ...], path: Path) -> Path:
    large = [size * times for size, times in zip(shape, repeats, strict=True)]
    graph = helper.make_graph(
        [helper.make_node("Tile", ["x", "repeats"], ["y"])],
        "tile",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, large)],
        [numpy_helper.from_array(np.array(repeats, "int64"), "repeats")],
    )
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8), path)
    return path


@pytest.mark.integration
@pytest.mark.parametrize(("shape", "repeats"), TILED)
def test_indices_that_start_again_are_not_read_as_if_they_went_on(
    shape: tuple[int, ...], repeats: tuple[int, ...], tmp_path: Path
) -> None:
    lowered = lower(import_model(str(tile(shape, repeats, tmp_path / "tile.onnx"))), resolve_target("cpu"))
    values = np.random.default_rng(0).random(shape).astype("float32")
    for made in (build_plain(lowered), build_model(lowered, {}), build_model(lowered, {}, guess=True)):
        (found,) = made.open_here().run([values])
        assert np.array_equal(found, np.tile(values, repeats))
