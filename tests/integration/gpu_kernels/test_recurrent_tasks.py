"""Recurrent layers on GPUs as tasks: claimed by a template, measured over whole sequences."""

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

sys.path.append(str(Path(__file__).parent))
from relax_models import model, outputs

from tuneloom.backends.implementers import ModelKernel
from tuneloom.backends.resolving import resolve_target
from tuneloom.model import Artifact
from tuneloom.tuners.tvm.importing.onnx.converters.recurrent import Layer
from tuneloom.tuners.tvm.importing.recurrence.directions import directions_at_once
from tuneloom.tuners.tvm.importing.recurrence.meaning import steps_of
from tuneloom.tuners.tvm.importing.sources import ImportedModel
from tuneloom.tuners.tvm.inserting import claims_on
from tuneloom.tuners.tvm.lowering.graph import lower
from tuneloom.tuners.tvm.lowering.payloads import NO_TRACE, pack_kernel
from tuneloom.tuners.tvm.lowering.tasks import extract, kernel_calls, kernel_class, kernel_module, unpack
from tuneloom.tuners.tvm.measuring.artifacts import BuiltKernel
from tuneloom.tuners.tvm.measuring.building import build_kernel
from tuneloom.tuners.tvm.measuring.rebuilding import rebuild_kernel
from tuneloom.tuners.tvm.search.search import default_candidate

pytestmark = pytest.mark.integration


def layer(kind: str, directions: int = 1) -> Any:
    """A recurrent layer of 16 units over 7 steps."""
    from tvm import relax

    gates = {"LSTM": 4, "GRU": 3}[kind]
    builder = relax.BlockBuilder()
    x = relax.Var("x", relax.TensorType((7, 2, 8), "float32"))
    with builder.function("main", [x]):
        with builder.dataflow():
            random = np.random.default_rng(0)
            shapes = [(directions, gates * 16, width) for width in (8, 16)]
            weights = [relax.const(random.uniform(-0.5, 0.5, one).astype(np.float32)) for one in shapes]
            inputs = [x, *weights, *[None] * (5 if kind == "LSTM" else 3)]
            way = {"direction": b"bidirectional"} if directions == 2 else {}
            attributes = {"linear_before_reset": 1, "hidden_size": 16, **way}
            made = Layer(kind, builder, inputs, attributes).convert()
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


@pytest.mark.parametrize("kind", ["LSTM", "GRU"])
def test_both_directions_of_a_layer_are_one_kernel(kind: str) -> None:
    plain = layer(kind, directions=2)
    at_once = directions_at_once(plain)
    assert sum(kernel_calls(plain).values()) == 2 and sum(kernel_calls(at_once).values()) == 1
    np.testing.assert_allclose(outputs(at_once), outputs(plain), rtol=1e-5, atol=1e-6)


def test_a_layer_backwards_over_one_forwards_stays_a_kernel_of_its_own() -> None:
    from tvm import relax

    def body(builder: Any, values: list[Any]) -> Any:
        (x,) = values
        for way in (b"forward", b"reverse"):
            weights = [relax.const(np.ones((1, 48, 16), np.float32)) for _ in range(2)]
            attributes = {"linear_before_reset": 1, "hidden_size": 16, "direction": way}
            made = Layer("GRU", builder, [x, *weights, *[None] * 3], attributes).convert()
            x = builder.emit(relax.op.reshape(made.fields[0], (7, 2, 16)))
        return x

    plain = model(body, ((7, 2, 16), "float32"))
    assert sum(kernel_calls(directions_at_once(plain)).values()) == 2


@pytest.mark.parametrize("kind", ["LSTM", "GRU"])
def test_both_directions_are_a_task_that_a_template_claims_and_that_compiles_by_default(kind: str) -> None:
    pytest.importorskip("triton", reason="the extra triton is not installed")
    imported = ImportedModel(name="it", module=layer(kind, 2), inputs=(), outputs=(), digest="")
    lowered = lower(imported, resolve_target(json.dumps({"kind": "cuda", "arch": "sm_90"})))
    (task,) = (one for one in extract(lowered) if one.kernel_class == kind.lower())
    kernel = unpack(task)
    ((implementer, claim),) = claims_on(kernel)
    program = claim.program(claim.space.guesses[0])
    assert implementer.name == "triton" and program.kernels[-1].grid[2] == 2 and task.weight == 1


def test_the_default_runs_over_whole_sequences_when_it_is_measured_and_when_it_is_built_again() -> None:
    imported = ImportedModel(name="it", module=layer("LSTM"), inputs=(), outputs=(), digest="")
    lowered, on_gpu = (
        lower(imported, resolve_target(one)) for one in ("cpu", json.dumps({"kind": "cuda", "arch": "sm_90"}))
    )
    (name,) = (name for name in kernel_calls(lowered.module) if kernel_class(name) == "lstm")
    module, meaning = kernel_module(lowered.module[name]), on_gpu.meanings[name]
    kernel = ModelKernel(module=module, meaning=meaning, target=lowered.target)
    first = build_kernel(default_candidate(kernel).payload)
    again = rebuild_kernel(pack_kernel(module, lowered.target, meaning), NO_TRACE)
    for built in (first, again):
        assert isinstance(built, Artifact) and BuiltKernel.from_bytes(built.payload).lengths == 7


def test_lengths_of_sequences_travel_with_a_built_kernel() -> None:
    built = BuiltKernel(device="cuda", arguments=(("int32", (2,)),), library=b"code", lengths=7)
    assert BuiltKernel.from_bytes(built.to_bytes()) == built
