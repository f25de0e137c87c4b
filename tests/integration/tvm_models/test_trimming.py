"""Ends that are cut off what a convolution computed are never computed."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper

from tuneloom.backends.resolving import resolve_target
from tuneloom.tuners.tvm.importing.sources import import_model
from tuneloom.tuners.tvm.lowering.graph import lower
from tuneloom.tuners.tvm.models.compiling.building import build_model

LENGTH, CHANNELS, WINDOW = 20, 4, 6
RNG = np.random.default_rng(3)
WEIGHT = RNG.standard_normal((CHANNELS, CHANNELS // 2, WINDOW)).astype(np.float32)


def network(
    path: Path, begin: int, end: int, *, axis: int = 2, stride: int = 1, also_read: bool = False
) -> Path:
    """A grouped convolution, padded by three on both sides, a scale, an activation, and a slice of that."""
    constants = [
        numpy_helper.from_array(WEIGHT, "weight"),
        numpy_helper.from_array(np.full((1, CHANNELS, 1), 2, np.float32), "scale"),
        *(numpy_helper.from_array(np.array([one]), name) for name, one in
          (("begin", begin), ("end", end), ("axis", axis))),
    ]  # fmt: skip
    nodes = [
        helper.make_node(
            "Conv", ["x", "weight"], ["whole"], pads=[3, 3], group=2, strides=[stride], kernel_shape=[WINDOW]
        ),
        helper.make_node("Mul", ["scale", "whole"], ["scaled"]),
        helper.make_node("Abs", ["scaled"], ["bent"]),
        helper.make_node("Slice", ["bent", "begin", "end", "axis"], ["cut"]),
        helper.make_node("Relu", ["cut"], ["y"]),
        *([helper.make_node("ReduceSum", ["whole"], ["z"], keepdims=0)] if also_read else ()),
    ]
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, (1, CHANNELS, LENGTH))
    outputs = [
        helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in ("y", "z")[: 1 + also_read]
    ]
    graph = helper.make_graph(nodes, "net", [x], outputs, constants)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    path.write_bytes(model.SerializeToString())
    return path


def expected(values: Any, begin: int, end: int, axis: int, stride: int) -> Any:
    """What the network computes, one window after the other."""
    padded = np.pad(values[0], ((0, 0), (3, 3)))
    count, half = (LENGTH + 6 - WINDOW) // stride + 1, CHANNELS // 2
    columns = [
        [
            (
                padded[group * half : (group + 1) * half, at * stride : at * stride + WINDOW]
                * WEIGHT[channel]
            ).sum()
            for channel in range(CHANNELS)
            for group in (channel // half,)
        ]
        for at in range(count)
    ]
    whole: Any = np.abs(2 * np.array(columns).T)[None]
    return np.maximum(whole[:, begin:end] if axis == 1 else whole[:, :, begin:end], 0)


def slices(
    path: Path, begin: int, end: int, *, axis: int = 2, stride: int = 1, also_read: bool = False
) -> bool:
    """Whether the network still has a slice, once it computed what it should."""
    file = network(path, begin, end, axis=axis, stride=stride, also_read=also_read)
    lowered = lower(import_model(str(file)), resolve_target("cpu"))
    values = RNG.standard_normal((1, CHANNELS, LENGTH)).astype(np.float32)
    result, *_ = build_model(lowered, {}).open().run([values])
    np.testing.assert_allclose(result, expected(values, begin, end, axis, stride), rtol=1e-4, atol=1e-5)
    return "strided_slice" in lowered.module.script()


@pytest.mark.parametrize(("begin", "end"), [(0, -1), (1, 21), (2, -3), (0, -3)])
def test_ends_that_only_padding_reaches_are_not_computed(tmp_path: Path, begin: int, end: int) -> None:
    assert not slices(tmp_path / "net.onnx", begin, end)


def test_an_end_after_a_stride_takes_as_much_padding_as_the_stride(tmp_path: Path) -> None:
    assert not slices(tmp_path / "net.onnx", 1, -1, stride=2)
    assert slices(tmp_path / "net.onnx", 0, -2, stride=2)


@pytest.mark.parametrize(("begin", "end", "axis"), [(0, -4, 2), (4, 21, 2), (0, 2, 1)])
def test_slices_that_padding_does_not_amount_to_stay(tmp_path: Path, begin: int, end: int, axis: int) -> None:
    assert slices(tmp_path / "net.onnx", begin, end, axis=axis)


def test_a_convolution_that_is_read_whole_is_not_computed_twice(tmp_path: Path) -> None:
    assert slices(tmp_path / "net.onnx", 0, -1, also_read=True)
