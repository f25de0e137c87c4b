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


def scattering(how: str, repeated: list[int], places: list[int], axis: int = 0) -> Any:
    """Updates that are scattered by places which are repeated to these extents."""
    into = [*repeated[:axis], ROWS, *repeated[axis + 1 :]]
    whole = helper.make_tensor("shape", TensorProto.INT64, [len(repeated)], repeated)
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


@pytest.mark.parametrize("how", ["none", "add", "mul", "min", "max"])
@pytest.mark.parametrize("row", [[64], [5], [3, 32]], ids=["vectors", "a few numbers", "matrices"])
def test_rows_are_brought_in_row_by_row(
    how: str, row: list[int], host: TargetSpec, imported: Callable[[Any], Any], runtime: Runtime
) -> None:
    model = scattering(how, [PLACES, *row], [PLACES, *[1] * len(row)])
    lowered = lower(imported(model), host)
    assert "scatter_rows" in str(lowered.module["main"])
    given = values(model)
    for guess in (True, False):
        (found,) = build_model(lowered, {}, guess=guess).open().run(given)
        np.testing.assert_allclose(found, runtime(model, given)[0], rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("guess", [True, False])
def test_rows_for_places_that_do_not_exist_are_left_out(
    guess: bool, host: TargetSpec, imported: Callable[[Any], Any]
) -> None:
    model = scattering("add", [4, 64], [4, 1])
    x, rows = np.zeros((ROWS, 64), np.float32), np.ones((4, 64), np.float32)
    places = np.array([[3], [ROWS], [-ROWS - 1], [1 << 40]])
    (found,) = build_model(lower(imported(model), host), {}, guess=guess).open().run([x, places, rows])
    assert found[3].tolist() == [1.0] * 64 and found.sum() == 64


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
    model = scattering("add", repeated, places, axis)
    lowered = lower(imported(model), host)
    assert "scatter_rows" not in str(lowered.module["main"])
    given = values(model)
    (found,) = build_model(lowered, {}, guess=True).open().run(given)
    np.testing.assert_allclose(found, runtime(model, given)[0], rtol=1e-5, atol=1e-5)
