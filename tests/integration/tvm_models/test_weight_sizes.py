"""How much a model needs is known when it is opened, before anything is tuned."""

from pathlib import Path

import pytest

from support.models.onnx_files import write_network
from tuneloom.backends.cpu.backend import CpuBackend
from tuneloom.compiler.fast_import import load_tvm
from tuneloom.compiler.target import TargetSpec
from tuneloom.errors import TargetError
from tuneloom.model import ModelRecipe
from tuneloom.tuners.tvm.models.compiling.memory import activation_bytes
from tuneloom.tuners.tvm.models.opening import open_model


def test_a_model_is_refused_when_its_device_can_not_hold_the_weights(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, asked = write_network(tmp_path / "net.onnx"), list[int]()

    def refuse(_self: CpuBackend, weight_bytes: int, value_bytes: int, _target: TargetSpec) -> None:
        asked.extend((weight_bytes, value_bytes))
        raise TargetError("too large")

    monkeypatch.setattr(CpuBackend, "require_memory", refuse)
    found = open_model(ModelRecipe(key="net", source=str(path), shapes={}, target="cpu"))
    assert isinstance(found, TargetError) and str(found) == "too large"
    assert asked[0] >= 8 * 8 * 4, "a convolution of eight by eight channels"
    assert asked[1] > 0


def test_values_are_held_as_long_as_somebody_reads_them() -> None:
    load_tvm()
    from tvm import relax

    builder = relax.BlockBuilder()
    x = relax.Var("x", relax.TensorType((4, 256), "float32"))
    with builder.function("main", [x]):
        with builder.dataflow():
            wide = builder.emit(relax.op.concat([x, x, x], 0))
            view = builder.emit(relax.op.reshape(wide, (3, 4, 256)))
            sums = builder.emit(relax.op.sum(view, [0]))
            squares = builder.emit(relax.op.multiply(sums, sums))
            pair = builder.emit(relax.Tuple([squares, x]))
            result = builder.emit_output(relax.op.concat([pair[0], pair[1]], 1))
        builder.emit_func_output(result)
    module = relax.transform.LegalizeOps()(builder.get())
    kib = activation_bytes(module) / 1024
    assert kib == 4 + 12 + 4, "x, the wide value behind its view, and its sums"
