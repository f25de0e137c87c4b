"""Tensors that are cut into parts and joined along another axis are regrouped without copies of parts."""

from pathlib import Path

import numpy as np
import pytest
from onnx import TensorProto, helper

from tuneloom.backends.resolving import resolve_target
from tuneloom.tuners.tvm.importing.sources import import_model
from tuneloom.tuners.tvm.lowering.graph import lower
from tuneloom.tuners.tvm.models.compiling.building import build_model

SHAPE = (4, 6, 8)


def network(path: Path, cut: int, joined: int, sizes: list[int], order: list[int]) -> Path:
    """The parts of a tensor along one axis, joined in some order along another, and added to 1."""
    names = [f"part{n}" for n in range(len(sizes))]
    constants = [
        helper.make_tensor("sizes", TensorProto.INT64, [len(sizes)], sizes),
        helper.make_tensor("one", TensorProto.FLOAT, [], [1.0]),
    ]
    nodes = [
        helper.make_node("Split", ["x", "sizes"], names, axis=cut),
        helper.make_node("Concat", [names[n] for n in order], ["whole"], axis=joined),
        helper.make_node("Add", ["whole", "one"], ["y"]),
    ]
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, SHAPE)
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, None)
    graph = helper.make_graph(nodes, "net", [x], [y], constants)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    path.write_bytes(model.SerializeToString())
    return path


def joins(path: Path, cut: int, joined: int, sizes: list[int], order: list[int]) -> bool:
    """Whether the network has a kernel that joins parts, once it computed what it should."""
    lowered = lower(import_model(str(network(path, cut, joined, sizes, order))), resolve_target("cpu"))
    values = np.random.default_rng(0).standard_normal(SHAPE).astype(np.float32)
    (result,) = build_model(lowered, {}).open().run([values])
    parts = np.split(values, np.cumsum(sizes)[:-1], axis=cut)
    np.testing.assert_array_equal(result, np.concatenate([parts[n] for n in order], axis=joined) + 1)
    return "concat" in lowered.module.script()


@pytest.mark.parametrize("cut", [0, 1, 2])
@pytest.mark.parametrize("joined", [0, 1, 2, -1])
def test_equal_parts_in_their_order_become_views(tmp_path: Path, cut: int, joined: int) -> None:
    sizes = [SHAPE[cut] // 2] * 2
    assert not joins(tmp_path / "net.onnx", cut, joined, sizes, [0, 1])


@pytest.mark.parametrize(
    ("sizes", "order"), [([2, 2, 2], [0, 2, 1]), ([2, 2, 2], [0, 1]), ([2, 2, 2], [0, 1, 2, 2])]
)
def test_parts_that_are_left_out_or_in_another_order_are_joined(
    tmp_path: Path, sizes: list[int], order: list[int]
) -> None:
    assert joins(tmp_path / "net.onnx", 1, 2, sizes, order)


def test_parts_of_different_sizes_are_joined_along_their_own_axis(tmp_path: Path) -> None:
    assert joins(tmp_path / "net.onnx", 1, 1, [2, 4], [0, 1])
