"""Models for GPUs as one launch, seen in their program: no GPU is needed for that."""

import json
import re
import shutil
import sys
from pathlib import Path
from threading import Thread
from typing import Any

import numpy as np
import pytest

sys.path.append(str(Path(__file__).parent))
from relax_models import model, outputs

from tuneloom.backends.cuda.passes.scratch import scratch_outside
from tuneloom.backends.finding import backend_of
from tuneloom.backends.resolving import resolve_target
from tuneloom.compiler.fast_import import load_tvm
from tuneloom.gpus import visible_gpus
from tuneloom.model import TensorInfo
from tuneloom.model.space import configured, implementer_of
from tuneloom.tuners.tvm.importing.sources import ImportedModel
from tuneloom.tuners.tvm.inserting import claims_on
from tuneloom.tuners.tvm.lowering.graph import LoweredModel, lower
from tuneloom.tuners.tvm.lowering.tasks import extract, unpack
from tuneloom.tuners.tvm.models.compiling.building import build_model
from tuneloom.tuners.tvm.models.compiling.kernels import with_schedules
from tuneloom.tuners.tvm.models.compiling.parameters import split_parameters

pytest.importorskip("triton", reason="the extra triton is not installed")
pytestmark = pytest.mark.integration
IMAGE = (8, 16, 8, 8)
WORKSPACE_BYTES = 32 << 20


def network(builder: Any, values: list[Any]) -> Any:
    """Two convolutions and two products, each with something between."""
    from tvm import relax

    op, emit, random = relax.op, builder.emit, np.random.default_rng(0)

    def constant(*shape: int) -> Any:
        return relax.const(random.standard_normal(shape).astype("float32"))

    y = emit(op.nn.conv2d(values[0], constant(16, 16, 3, 3), padding=1))
    y = emit(op.nn.relu(emit(op.add(y, constant(16, 1, 1)))))
    y = emit(op.nn.conv2d(y, constant(16, 16, 3, 3), padding=1))
    y = emit(op.matmul(emit(op.mean(y, [2, 3])), constant(16, 64)))
    y = emit(op.nn.relu(emit(op.add(y, constant(64)))))
    return op.nn.softmax(emit(op.matmul(y, constant(64, 32))))


def lowered_for(target: str) -> LoweredModel:
    imported = ImportedModel(
        name="it",
        module=model(network, (IMAGE, "float32")),
        inputs=(TensorInfo(name="x", shape=IMAGE, dtype="float32"),),
        outputs=(TensorInfo(name="y", shape=(8, 32), dtype="float32"),),
        digest="",
    )
    return lower(imported, resolve_target(target))


def by_libraries(lowered: LoweredModel) -> dict[str, str]:
    """Kernels by the libraries where these take them, by templates otherwise."""
    if shutil.which("cc") is None:
        pytest.skip("there is no C compiler")
    chosen = {}
    for task in extract(lowered):
        name, claim = [(one.name, claim) for one, claim in claims_on(unpack(task))][-1]
        chosen[task.key] = configured(name, claim.space.guesses[0])
    assert {implementer_of(text) for text in chosen.values()} == {"triton", "cublaslt", "cudnn"}
    return chosen


@pytest.fixture(scope="module")
def program() -> str:
    """The program as text."""
    from tvm import relax

    lowered = lowered_for(json.dumps({"kind": "cuda", "arch": "sm_90"}))
    tvm, backend, target = load_tvm(), backend_of(lowered.target), lowered.target.to_tvm()
    module, _ = split_parameters(with_schedules(lowered, by_libraries(lowered)))
    with target, tvm.transform.PassContext(opt_level=3, config=backend.model_settings(lowered.target)):
        module = tvm.transform.Sequential(backend.finishing(lowered.target))(module)
        return str(relax.build(module, target, relax_pipeline=None).as_text())


def calls(program: str, function: str) -> list[list[str]]:
    """What a function of the program calls, in order, with the arguments."""
    body = program.split(f"@{function}:\n")[1].split("\n\n")[0]
    found = re.findall(r"^  call +(\S+) +in: (.*?) +dst:", body, re.MULTILINE)
    return [[name, *arguments.split(", ")] for name, arguments in found]


def test_all_kernels_between_input_and_output_are_captured_with_the_calls_of_libraries(program: str) -> None:
    assert "vm.builtin.cuda_graph.run_or_capture" in [name for name, *_ in calls(program, "main")]
    kernels = [one for one in calls(program, "main_cuda_graph_capture") if "vm.builtin" not in one[0]]
    assert [name for name, *_ in kernels] == [
        *("fused_conv2d_add_relu", "conv2d", "mean"),
        *("fused_matmul_add1_relu1", "matmul1"),
    ]
    assert [len(arguments) for _, *arguments in kernels] == [5, 4, 2, 5, 4], "with their workspaces"


def test_the_workspace_of_captured_calls_belongs_to_the_model_and_is_kept(program: str) -> None:
    assert len([one for one in calls(program, "cuda_graph_alloc") if "alloc_storage" in one[0]]) == 4
    whole = program.split("@main_cuda_graph_capture:\n")[1]
    assert f"i{WORKSPACE_BYTES}" in whole


def test_kernels_of_several_parts_compute_the_same_with_their_scratch_outside() -> None:
    from tvm import relax

    def body(builder: Any, values: list[Any]) -> Any:
        shares = builder.emit(relax.op.nn.softmax(values[0]))
        parts = builder.emit(relax.op.split(shares, 2, axis=1))
        return relax.op.add(builder.emit(parts[0]), builder.emit(parts[1]))

    plain = relax.transform.LegalizeOps()(model(body, ((6, 10), "float32")))
    changed = scratch_outside(plain)
    assert "alloc_buffer" in str(plain) and "alloc_buffer" not in str(changed)
    np.testing.assert_array_equal(outputs(changed), outputs(plain))


def test_buffers_inside_of_one_kernel_stay_there() -> None:
    from tvm import relax

    plain = relax.transform.LegalizeOps()(
        model(lambda _builder, values: relax.op.nn.softmax(values[0]), ((6, 10), "float32"))
    )
    target = resolve_target(json.dumps({"kind": "cuda", "arch": "sm_90"}))
    scheduled = backend_of(target).default_module(plain, target)
    assert "thread_binding" in str(scheduled) and scratch_outside(scheduled) is scheduled


@pytest.mark.gpu
@pytest.mark.skipif(not visible_gpus(), reason="no GPU")
def test_a_graph_outlives_the_thread_that_captured_it() -> None:
    lowered = lowered_for("cuda")
    image = np.random.default_rng(1).standard_normal(IMAGE).astype(np.float32)
    (expected,) = build_model(lowered, {}).open_here().run([image])
    running = build_model(lowered, by_libraries(lowered)).open_here()
    thread = Thread(target=lambda: [running.run([image]) for _ in range(2)])
    thread.start()
    thread.join()
    other = build_model(lowered, {}).open_here()  # takes the memory that the thread gave back
    for _ in range(3):
        other.run([image])
        (found,) = running.run([image])
        np.testing.assert_allclose(found, expected, rtol=1e-3, atol=1e-4)
