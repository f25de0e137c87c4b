"""Powers with a constant exponent are spelled out, and mean what they meant."""

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from tuneloom.backends.resolving import resolve_target
from tuneloom.tuners.tvm.importing.sources import import_model
from tuneloom.tuners.tvm.lowering.graph import lower
from tuneloom.tuners.tvm.models.compiling.building import build_model


def network(exponent: float, at: str) -> bytes:
    """x to a power that has no axes, or one."""
    dims = [] if at == "scalar" else [1]
    power = helper.make_tensor("p", TensorProto.FLOAT, dims, [exponent])
    x, y = (helper.make_tensor_value_info(name, TensorProto.FLOAT, [3, 5]) for name in "xy")
    graph = helper.make_graph([helper.make_node("Pow", ["x", "p"], ["y"])], "net", [x], [y], [power])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    return bytes(model.SerializeToString())


@pytest.mark.parametrize("at", ["scalar", "vector"])
@pytest.mark.parametrize("exponent", [0.25, 0.5, 0.75, 2.0, 3.0, 4.0, 2.5])
def test_a_power_computes_what_it_says(tmp_path: Path, exponent: float, at: str) -> None:
    path = tmp_path / "net.onnx"
    path.write_bytes(network(exponent, at))
    onnx.checker.check_model(str(path))
    lowered = lower(import_model(str(path)), resolve_target("cpu"))
    values = np.random.default_rng(0).uniform(0.1, 4, (3, 5)).astype(np.float32)
    (result,) = build_model(lowered, {}).open().run([values])
    np.testing.assert_allclose(result, values**exponent, rtol=2e-6)
    assert ("T.pow" in lowered.module.script()) == (exponent == 2.5)


def test_a_cube_of_a_negative_number_is_negative(tmp_path: Path) -> None:
    path = tmp_path / "net.onnx"
    path.write_bytes(network(3.0, "scalar"))
    lowered = lower(import_model(str(path)), resolve_target("cpu"))
    (result,) = build_model(lowered, {}).open().run([np.full((3, 5), -2, np.float32)])
    assert (result == -8).all()
