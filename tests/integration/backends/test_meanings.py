"""What fused kernels compute is known beside their loops, where an implementer may ask for it."""

import numpy as np
import pytest

from tuneloom.backends.cpu.backend import CpuBackend
from tuneloom.backends.implementers import ModelKernel
from tuneloom.backends.meaning import Meaning
from tuneloom.backends.resolving import resolve_target
from tuneloom.testing.models.perceptron import perceptron
from tuneloom.tuners.tvm.lowering.graph import LowerOptions, lower
from tuneloom.tuners.tvm.lowering.tasks import extract, unpack


class Nobody:
    """An implementer that takes nothing, so that meanings are read."""

    name = "nobody"

    def claim(self, kernel: ModelKernel) -> None:
        return None


@pytest.fixture
def kernels(monkeypatch: pytest.MonkeyPatch) -> dict[str, ModelKernel]:
    monkeypatch.setattr(CpuBackend, "implementers", lambda _self, _target: (Nobody(),))
    lowered = lower(perceptron(), resolve_target("cpu"), LowerOptions(layout="plain"))
    return {task.name: unpack(task) for task in extract(lowered)}


def test_a_fused_kernel_has_the_operators_that_were_fused(kernels: dict[str, ModelKernel]) -> None:
    found = {name: [step.operator for step in _meaning(kernel).steps] for name, kernel in kernels.items()}
    assert ["relax.matmul", "relax.add", "relax.nn.relu"] in found.values()
    assert ["relax.nn.softmax"] in found.values()


def test_operands_of_a_step_are_inputs_and_earlier_steps(kernels: dict[str, ModelKernel]) -> None:
    (kernel,) = (one for one in kernels.values() if len(_meaning(one).steps) == 3)
    product, bias, relu = _meaning(kernel).steps
    assert (product.operands, bias.operands, relu.operands) == ((0, 1), (3, 2), (4,))
    assert [one.shape for one in _meaning(kernel).inputs] == [(32, 48), (48, 64), (64,)]


def test_a_meaning_survives_as_text(kernels: dict[str, ModelKernel]) -> None:
    for kernel in kernels.values():
        assert Meaning.from_json(_meaning(kernel).to_json()) == _meaning(kernel)


def test_the_keys_of_kernels_do_not_depend_on_whether_meanings_are_read(
    kernels: dict[str, ModelKernel], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.undo()
    plain = extract(lower(perceptron(), resolve_target("cpu"), LowerOptions(layout="plain")))
    assert {task.name for task in plain} == set(kernels)
    assert all(unpack(task).meaning is None for task in plain)


def test_bounds_of_a_clip_and_constants_are_part_of_the_meaning(monkeypatch: pytest.MonkeyPatch) -> None:
    from tvm import relax

    from tuneloom.tuners.tvm.lowering.meanings import Meanings
    from tuneloom.tuners.tvm.lowering.passes import fusing_passes

    builder = relax.BlockBuilder()
    x = relax.Var("x", relax.TensorType((4, 8), "float32"))
    with builder.function("main", [x]):
        with builder.dataflow():
            doubled = builder.emit(relax.op.multiply(x, relax.const(np.float32(2.5))))
            bound = builder.emit_output(relax.op.clip(doubled, 0, 6))
        builder.emit_func_output(bound)
    import tvm

    meanings = Meanings()
    target = resolve_target("cpu")
    with target.to_tvm():
        tvm.transform.Sequential(fusing_passes(target, meanings))(builder.get())
    found = max(meanings.known.values(), key=lambda one: len(one.steps))
    constant, product, clip = found.steps
    assert (constant.operator, constant.attributes["value"]) == ("relax.const", 2.5)
    assert product.operands == (0, 1)
    assert (clip.attributes["min"], clip.attributes["max"]) == (0, 6)


def _meaning(kernel: ModelKernel) -> Meaning:
    assert kernel.meaning is not None
    return kernel.meaning
