"""Recurrent layers on GPUs as tasks: claimed by a template, measured over whole sequences."""

import json
from typing import Any

import numpy as np
import pytest

from tuneloom.backends.resolving import resolve_target
from tuneloom.tuners.tvm.importing.onnx.converters.recurrent import Layer
from tuneloom.tuners.tvm.importing.recurrence.meaning import steps_of
from tuneloom.tuners.tvm.importing.sources import ImportedModel
from tuneloom.tuners.tvm.inserting import claims_on
from tuneloom.tuners.tvm.lowering.graph import lower
from tuneloom.tuners.tvm.lowering.tasks import extract, unpack
from tuneloom.tuners.tvm.measuring.artifacts import BuiltKernel

pytestmark = pytest.mark.integration


def layer(kind: str) -> Any:
    """A recurrent layer of 16 units over 7 steps."""
    from tvm import relax

    gates = {"LSTM": 4, "GRU": 3}[kind]
    builder = relax.BlockBuilder()
    x = relax.Var("x", relax.TensorType((7, 2, 8), "float32"))
    with builder.function("main", [x]):
        with builder.dataflow():
            weights = [relax.const(np.ones((1, gates * 16, width), np.float32)) for width in (8, 16)]
            inputs = [x, *weights, *[None] * (5 if kind == "LSTM" else 3)]
            made = Layer(kind, builder, inputs, {"linear_before_reset": 1, "hidden_size": 16}).convert()
            result = builder.emit_output(made.fields[0])
        builder.emit_func_output(result)
    return builder.get()


@pytest.mark.parametrize("kind", ["LSTM", "GRU"])
def test_a_recurrent_layer_is_a_task_that_a_template_claims(kind: str) -> None:
    pytest.importorskip("triton", reason="the extra triton is not installed")
    imported = ImportedModel(name="it", module=layer(kind), inputs=(), outputs=(), digest="")
    tasks = extract(lower(imported, resolve_target(json.dumps({"kind": "cuda", "arch": "sm_90"}))))
    (task,) = (one for one in tasks if one.kernel_class == kind.lower())
    kernel = unpack(task)
    assert [one.name for one, _ in claims_on(kernel)] == ["triton"]
    assert kernel.meaning is not None and steps_of(kernel.meaning) == 7


def test_lengths_of_sequences_travel_with_a_built_kernel() -> None:
    built = BuiltKernel(device="cuda", arguments=(("int32", (2,)),), library=b"code", lengths=7)
    assert BuiltKernel.from_bytes(built.to_bytes()) == built
