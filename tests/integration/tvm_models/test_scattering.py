"""Rows that are scattered to places of their own, as graph networks add what neighbours send."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from onnx import TensorProto, helper

from tuneloom.compiler.target import TargetSpec
from tuneloom.tuners.tvm.lowering.graph import lower
from tuneloom.tuners.tvm.models.compiling.building import build_model

pytestmark = pytest.mark.integration
Runtime = Callable[[Any, list[Any]], list[Any]]
ROWS, PLACES = 20, 50


def scattering(width: int, how: str, repeated: list[int], places: list[int], axis: int = 0) -> Any:
    """Updates that are scattered by places which are repeated to these extents."""
    into = [ROWS, width] if axis == 0 else [width, ROWS]
    whole = helper.make_tensor("shape", TensorProto.INT64, [2], repeated)
    nodes = [
        helper.make_node("Expand", ["places", "shape"], ["everywhere"]),
        helper.make_node("ScatterElements", ["x", "everywhere", "updates"], ["y"], axis=axis, reduction=how),
    ]
    inputs = [
        helper.make_tensor_value_info("x", TensorProto.FLOAT, into),
        helper.make_tensor_value_info("places", TensorProto.INT64, places),
        helper.make_tensor_value_info("updates", TensorProto.FLOAT, repeated),
    ]
    output = helper.make_tensor_value_info("y", TensorProto.FLOAT, into)
    graph = helper.make_graph(nodes, "net", inputs, [output], initializer=[whole])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=8)


def values(model: Any) -> list[Any]:
    random = np.random.default_rng(5)
    x, places, updates = (
        [dimension.dim_value for dimension in one.type.tensor_type.shape.dim] for one in model.graph.input
    )
    return [
        random.standard_normal(x).astype(np.float32),
        random.integers(-ROWS, ROWS, places),
        random.standard_normal(updates).astype(np.float32),
    ]


@pytest.mark.parametrize("how", ["add", "mul", "min", "max"])
@pytest.mark.parametrize("width", [64, 5], ids=["vectors", "a few numbers"])
def test_rows_are_brought_in_row_by_row(
    how: str, width: int, host: TargetSpec, imported: Callable[[Any], Any], runtime: Runtime
) -> None:
    model = scattering(width, how, [PLACES, width], [PLACES, 1])
    lowered = lower(imported(model), host)
    assert "scatter_rows" in str(lowered.module["main"])
    given = values(model)
    for guess in (True, False):
        (found,) = build_model(lowered, {}, guess=guess).open().run(given)
        np.testing.assert_allclose(found, runtime(model, given)[0], rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(
    ("repeated", "places", "axis"),
    [([PLACES, PLACES], [1, PLACES], 0), ([PLACES, 5], [PLACES, 5], 0), ([5, PLACES], [1, PLACES], 1)],
    ids=["a place for each column", "a place for each number", "columns"],
)
def test_what_is_not_scattered_by_rows_is_left_to_tvm(
    repeated: list[int],
    places: list[int],
    axis: int,
    host: TargetSpec,
    imported: Callable[[Any], Any],
    runtime: Runtime,
) -> None:
    model = scattering(repeated[1] if axis == 0 else repeated[0], "add", repeated, places, axis)
    lowered = lower(imported(model), host)
    assert "scatter_rows" not in str(lowered.module["main"])
    given = values(model)
    (found,) = build_model(lowered, {}, guess=True).open().run(given)
    np.testing.assert_allclose(found, runtime(model, given)[0], rtol=1e-5, atol=1e-5)
