"""Tasks, their spaces, and models put together from tuned kernels."""

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tuneloom.backends.base import GENERAL_SPACE
from tuneloom.backends.cpu.target import CpuTarget
from tuneloom.backends.cpu.templates import generator
from tuneloom.backends.cpu.templates.generator import sketches_of, space_for
from tuneloom.backends.cpu.templates.registers import most_vectors, register_budget, tile_vectors
from tuneloom.backends.finding import backend_of
from tuneloom.backends.resolving import resolve_target
from tuneloom.compiler.target import TargetSpec
from tuneloom.errors import BundleError
from tuneloom.tuners.tvm.importing.sources import ImportedModel, import_model
from tuneloom.tuners.tvm.lowering.graph import LoweredModel, lower
from tuneloom.tuners.tvm.lowering.payloads import trace_text
from tuneloom.tuners.tvm.lowering.tasks import extract, kernel_key, unpack
from tuneloom.tuners.tvm.models.compiling.building import build_model
from tuneloom.tuners.tvm.models.compiling.compiled import LIBRARY, CompiledModel, load_compiled
from tuneloom.tuners.tvm.models.compiling.storing import PARAMETERS
from tuneloom.tuners.tvm.runner.weights import stored_parameters

sys.path.insert(0, str(Path(__file__).parent))
from small_networks import Net, network

Import = Callable[[Any], ImportedModel]
Check = Callable[[Any, CompiledModel], None]
KEYS = """
import sys
from tuneloom.tuners.tvm.importing.sources import import_model
from tuneloom.tuners.tvm.lowering import graph, tasks
from tuneloom.backends.resolving import resolve_target
lowered = graph.lower(import_model(sys.argv[1]), resolve_target("cpu"))
print(*(task.key for task in tasks.extract(lowered)))
"""


@pytest.fixture(scope="module")
def squeezenet() -> LoweredModel:
    return lower(import_model("zoo:squeezenet"), resolve_target("cpu"))


def test_keys_are_the_same_in_every_process(tmp_path: Path, host: TargetSpec) -> None:
    path = tmp_path / "net.onnx"
    path.write_bytes(network("transformed").SerializeToString())
    other = subprocess.run(
        [sys.executable, "-c", KEYS, str(path)], capture_output=True, text=True, check=True
    )
    assert other.stdout.split() == [task.key for task in extract(lower(import_model(str(path)), host))]


def test_payload_holds_the_kernel_and_its_target(squeezenet: LoweredModel) -> None:
    tasks = extract(squeezenet)[:5]
    assert len(tasks) == 5
    for task in tasks:
        kernel = unpack(task)
        assert kernel.target == squeezenet.target
        assert kernel_key(kernel.module["main"], kernel.target) == task.key


def test_equal_kernels_are_one_task_with_their_weight(squeezenet: LoweredModel) -> None:
    tasks = extract(squeezenet)
    assert len({task.key for task in tasks}) == len(tasks)
    assert max(task.weight for task in tasks) >= 2
    assert 0.3 < sum(task.gflop * task.weight for task in tasks) < 1.0


def test_every_heavy_kernel_has_a_small_space(squeezenet: LoweredModel) -> None:
    heavy = [task for task in extract(squeezenet) if task.gflop > 0.001]
    assert len(heavy) > 10
    for task in heavy:
        assert space_for(unpack(task).module, squeezenet.target) != GENERAL_SPACE, task.name


def test_first_guesses_keep_to_the_register_budget(squeezenet: LoweredModel) -> None:
    sketches = [
        sketch
        for task in extract(squeezenet)
        for sketch in sketches_of(unpack(task).module, squeezenet.target)
    ]
    vectors = [tile_vectors(schedule) for schedule in sketches if schedule is not None]
    assert 1 < max(vectors) <= most_vectors(squeezenet.target)


def test_a_first_guess_makes_no_schedule_that_it_does_not_use(
    squeezenet: LoweredModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    task = next(one for one in extract(squeezenet) if one.kernel_class == "conv2d_add_relu")
    attempts: list[Any] = []
    attempt = generator._attempt
    monkeypatch.setattr(generator, "_attempt", lambda *how: attempts.append(attempt(*how)) or attempts[-1])
    assert len(list(sketches_of(unpack(task).module, squeezenet.target))) == len(attempts) > 1
    attempts.clear()
    assert generator.first_guess(unpack(task).module, squeezenet.target) is attempts[-1]
    assert attempts[:-1] == [None] * (len(attempts) - 1)


def test_too_large_a_tile_is_refused(squeezenet: LoweredModel) -> None:
    task = next(one for one in extract(squeezenet) if one.kernel_class == "conv2d_add_relu")
    narrow = CpuTarget(kind="llvm", config={"kind": "llvm"}, vector_bits=128)
    schedules = [one for one in sketches_of(unpack(task).module, squeezenet.target) if one is not None]
    assert register_budget(squeezenet.target).apply(schedules[0])
    assert register_budget(narrow).apply(schedules[0]) == (tile_vectors(schedules[0]) <= 14)


def test_gpu_kernels_get_the_general_space(squeezenet: LoweredModel) -> None:
    cuda = resolve_target('{"kind": "cuda", "arch": "sm_90"}')
    assert backend_of(cuda).space(unpack(extract(squeezenet)[0]).module, cuda) == GENERAL_SPACE


def test_model_with_tuned_kernels_agrees(host: TargetSpec, imported: Import, agrees: Check) -> None:
    model = network("transformed")
    lowered = lower(imported(model), host)
    schedules = {}
    for task in extract(lowered):
        for schedule in sketches_of(unpack(task).module, host):
            if schedule is not None:
                schedules[task.key] = trace_text(schedule.trace)
    assert schedules
    agrees(model, build_model(lowered, schedules))


def test_trace_of_another_kernel_is_not_used(host: TargetSpec, imported: Import, agrees: Check) -> None:
    model = network("pools")
    lowered = lower(imported(model), host)
    tasks = extract(lowered)
    foreign = trace_text(next(sketches_of(unpack(tasks[0]).module, host)).trace)
    compiled = build_model(lowered, {tasks[-1].key: foreign})
    assert "does not fit its kernel" in compiled.unscheduled[tasks[-1].key]
    agrees(model, compiled)


def test_saved_model_runs_again(host: TargetSpec, imported: Import, tmp_path: Path) -> None:
    compiled = build_model(lower(imported(network("classifier")), host), {}, guess=True)
    compiled.export(tmp_path)
    again = load_compiled(tmp_path, compiled.inputs, compiled.outputs)
    data = [np.ones(info.shape, dtype=info.dtype) for info in compiled.inputs]
    expected = compiled.open().run(data)[0]
    np.testing.assert_array_equal(again.open().run(data)[0], expected)
    (tmp_path / "older").mkdir()
    (tmp_path / "older" / LIBRARY).symlink_to(tmp_path / LIBRARY)
    np.savez(tmp_path / "older" / "parameters.npz", **stored_parameters(tmp_path))
    older = load_compiled(tmp_path / "older", compiled.inputs, compiled.outputs)
    np.testing.assert_array_equal(older.open().run(data)[0], expected)


def test_a_model_is_linked_where_no_compiler_is_installed(
    host: TargetSpec, imported: Import, monkeypatch: pytest.MonkeyPatch
) -> None:
    lowered = lower(imported(network("classifier")), host)
    data = [np.ones(info.shape, dtype=info.dtype) for info in lowered.inputs]
    expected = build_model(lowered, {}).open().run(data)[0]
    monkeypatch.setattr("tvm.support.cc.get_cc", lambda: None)
    np.testing.assert_array_equal(build_model(lowered, {}).open().run(data)[0], expected)


def test_weights_are_kept_beside_the_library(host: TargetSpec, imported: Import, tmp_path: Path) -> None:
    net = Net()
    heavy = net.model((1, 1024), net.add("MatMul", "x", net.draw(1024, 1024)))
    build_model(lower(imported(heavy), host), {}).export(tmp_path)
    assert (tmp_path / PARAMETERS).stat().st_size > 4_000_000
    assert (tmp_path / LIBRARY).stat().st_size < 2_000_000


def test_damaged_library_is_refused(host: TargetSpec, imported: Import, tmp_path: Path) -> None:
    compiled = build_model(lower(imported(network("classifier")), host), {})
    compiled.export(tmp_path)
    (tmp_path / LIBRARY).write_bytes(b"nothing")
    with pytest.raises(BundleError, match="can't load the compiled model"):
        load_compiled(tmp_path, compiled.inputs, compiled.outputs)
