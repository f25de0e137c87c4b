"""Sums in half precision on a CPU."""

from typing import Any

import numpy as np
import pytest

from tuneloom.backends.resolving import resolve_target
from tuneloom.compiler.fast_import import load_tvm
from tuneloom.model import TensorInfo
from tuneloom.tuners.tvm.importing.sources import ImportedModel
from tuneloom.tuners.tvm.lowering.graph import lower
from tuneloom.tuners.tvm.models.compiling.building import build_model

pytestmark = pytest.mark.integration
COUNT = 20_000


@pytest.mark.parametrize("operator", ["sum", "mean"])
def test_many_numbers_are_added_in_single_precision(operator: str) -> None:
    """Added in half precision, they stop growing where one of them is less than half a step."""
    values = np.full((2, COUNT), 0.02, np.float16)
    (found,) = build_model(lower(reducing(operator), resolve_target("cpu")), {}).open_here().run([values])
    expected = getattr(np, operator)(values.astype(float), axis=-1)
    assert found.dtype == np.float16
    np.testing.assert_allclose(found.astype(float), expected, rtol=1e-3)


def reducing(operator: str) -> ImportedModel:
    load_tvm()
    from tvm import relax

    builder, x = relax.BlockBuilder(), relax.Var("x", relax.TensorType((2, COUNT), "float16"))
    with builder.function("main", [x]):
        with builder.dataflow():
            result = builder.emit_output(getattr(relax.op, operator)(x, -1))
        builder.emit_func_output(result)
    infos: dict[str, Any] = {
        "inputs": (TensorInfo(name="x", shape=(2, COUNT), dtype="float16"),),
        "outputs": (TensorInfo(name="y", shape=(2,), dtype="float16"),),
    }
    return ImportedModel(name="sums", module=builder.get(), digest="", **infos)
