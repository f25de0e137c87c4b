"""Recurrent layers agree with ONNX Runtime over their attributes."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper

from tuneloom.backends.finding import backend_of
from tuneloom.backends.resolving import resolve_target
from tuneloom.compiler.target import TargetSpec
from tuneloom.gpus import visible_gpus
from tuneloom.tuners.tvm.importing.sources import ImportedModel
from tuneloom.tuners.tvm.lowering.graph import lower
from tuneloom.tuners.tvm.lowering.tasks import extract
from tuneloom.tuners.tvm.models.compiling.building import build_model

Runtime = Callable[[Any, list[Any]], list[Any]]
STEPS, BATCH, WIDTH = 5, 3, 6
GATES = {"LSTM": 4, "GRU": 3, "RNN": 1}


def layer(kind: str, hidden: int, directions: int, extra: dict[str, Any], **attributes: Any) -> Any:
    random, gates = np.random.default_rng(3), GATES[kind]

    def values(*shape: int) -> Any:
        return (random.standard_normal(shape) * 0.7).astype(np.float32)

    constants = {
        "w": values(directions, gates * hidden, WIDTH),
        "r": values(directions, gates * hidden, hidden) / np.float32(max(1.0, hidden / 16) ** 0.5),
        "b": values(directions, 2 * gates * hidden),
        **extra,
    }
    names = ["x", "w", "r", "b", *(name if name in constants else "" for name in ("lengths", "h", "c", "p"))]
    while not names[-1]:
        names.pop()
    outputs = ["y", "y_h", "y_c"][: 3 if kind == "LSTM" else 2]
    node = helper.make_node(kind, names, outputs, hidden_size=hidden, **attributes)
    graph = helper.make_graph(
        [node],
        "net",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, (STEPS, BATCH, WIDTH))],
        [helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in outputs],
        [numpy_helper.from_array(value, name) for name, value in constants.items()],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 14)], ir_version=8)


def sequences() -> Any:
    return np.random.default_rng(5).standard_normal((STEPS, BATCH, WIDTH)).astype(np.float32)


def state(directions: int, hidden: int) -> Any:
    return np.random.default_rng(4).standard_normal((directions, BATCH, hidden)).astype(np.float32)


LENGTHS = {"lengths": np.array([5, 2, 4], dtype=np.int32)}
CASES = {
    "LSTM forward": layer("LSTM", 8, 1, {}),
    "LSTM in both directions with states": layer(
        "LSTM", 8, 2, {"h": state(2, 8), "c": state(2, 8)}, direction="bidirectional"
    ),
    "LSTM backwards with lengths": layer("LSTM", 5, 1, LENGTHS, direction="reverse"),
    "LSTM with peepholes and clipping": layer(
        "LSTM", 4, 1, {"p": np.ones((1, 12), dtype=np.float32) * 0.3}, clip=0.8
    ),
    "LSTM with coupled gates": layer("LSTM", 8, 1, {}, input_forget=1),
    "LSTM with other activations": layer(
        "LSTM",
        8,
        1,
        {},
        activations=["HardSigmoid", "Relu", "ScaledTanh"],
        activation_alpha=[0.3, 1.2],
        activation_beta=[0.4, 0.9],
    ),
    "GRU with the reset after the product": layer("GRU", 8, 1, {}, linear_before_reset=1),
    "GRU with the reset before the product": layer("GRU", 8, 2, LENGTHS, direction="bidirectional"),
    "GRU of more units than a GPU's block has threads": layer("GRU", 520, 1, LENGTHS, direction="reverse"),
    "RNN backwards": layer("RNN", 16, 1, {"h": state(1, 16)}, direction="reverse"),
}


@pytest.mark.parametrize("model", CASES.values(), ids=CASES.keys())
def test_a_recurrent_layer_agrees_with_its_runtime(
    model: Any, imported: Callable[[Any], ImportedModel], host: TargetSpec, runtime: Runtime
) -> None:
    x = sequences()
    got = build_model(lower(imported(model), host), {}, guess=True).open().run([x])
    for ours, theirs in zip(got, runtime(model, [x]), strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-4, atol=2e-6)


@pytest.mark.gpu
@pytest.mark.skipif(not visible_gpus(), reason="no GPU")
@pytest.mark.parametrize("model", CASES.values(), ids=CASES.keys())
def test_it_agrees_on_a_gpu_as_well(
    model: Any, imported: Callable[[Any], ImportedModel], runtime: Runtime
) -> None:
    x = sequences()
    got = build_model(lower(imported(model), resolve_target("cuda")), {}, guess=True).open().run([x])
    for ours, theirs in zip(got, runtime(model, [x]), strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-3, atol=1e-5)


@pytest.mark.parametrize("model", CASES.values(), ids=CASES.keys())
def test_on_a_gpu_every_kernel_has_threads(model: Any, imported: Callable[[Any], ImportedModel]) -> None:
    from tvm.tirx import PrimFunc

    gpu = resolve_target('{"kind": "cuda", "arch": "sm_90"}')
    module = backend_of(gpu).default_module(lower(imported(model), gpu).module, gpu)
    kernels = [function for function in module.functions.values() if isinstance(function, PrimFunc)]
    assert any("tuneloom.cell" in kernel.attrs for kernel in kernels)
    assert all("threadIdx.x" in kernel.script() for kernel in kernels)


def test_the_steps_are_no_task_but_the_product_with_the_input_is(
    imported: Callable[[Any], ImportedModel], host: TargetSpec
) -> None:
    tasks = extract(lower(imported(CASES["LSTM forward"]), host))
    assert tasks
    assert not any("lstm" in task.name for task in tasks)
