"""Fourier transforms as matrix products against NumPy's, and in models of ONNX."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator

from tuneloom.compiler.fast_import import load_tvm
from tuneloom.compiler.target import TargetSpec
from tuneloom.tuners.tvm.importing.sources import ImportedModel
from tuneloom.tuners.tvm.importing.spectra import spectrum
from tuneloom.tuners.tvm.lowering.graph import lower
from tuneloom.tuners.tvm.models.compiling.building import build_model


def transformed(lines: np.ndarray) -> np.ndarray:
    """What the spectrum of these lines comes to when TVM computes it as it is."""
    tvm = load_tvm()
    from tvm import relax

    bb = relax.BlockBuilder()
    x = relax.Var("x", relax.TensorType(lines.shape, "float32"))
    with bb.function("main", [x]):
        with bb.dataflow():
            found = bb.emit_output(spectrum(bb, x, *lines.shape))
        bb.emit_func_output(found)
    machine = relax.VirtualMachine(relax.build(bb.finalize(), target="llvm"), tvm.cpu())
    return machine["main"](tvm.runtime.tensor(lines)).numpy()


@pytest.mark.parametrize("length", [8, 45, 67, 96, 135, 512, 2048])
def test_short_long_odd_and_prime_lines_are_transformed(length: int) -> None:
    lines = np.random.default_rng(length).normal(size=(3, length)).astype("float32")
    expected = np.fft.rfft(lines, axis=1)
    got = transformed(lines)
    size = np.abs(expected).max()
    np.testing.assert_allclose(got[..., 0] / size, expected.real / size, atol=2e-6)
    np.testing.assert_allclose(got[..., 1] / size, expected.imag / size, atol=2e-6)


def recogniser(frame: int, **attributes: int) -> Any:
    """Frames of two signals, what is in their frequencies, and a filter bank for half of the spectrum."""
    bins = frame // 2 + 1 if attributes.get("onesided", 1) else frame
    values = {
        "step": np.array(frame // 3),
        "window": np.hanning(frame).astype("float32"),
        "bank": np.random.default_rng(1).random((bins, 5), dtype=np.float32),
    }
    nodes = [
        helper.make_node("STFT", ["x", "step", "window"], ["frames"], **attributes),
        helper.make_node("ReduceSumSquare", ["frames"], ["power"], axes=[-1], keepdims=0),
        helper.make_node("MatMul", ["power", "bank"], ["y"]),
    ]
    graph = helper.make_graph(
        nodes,
        "net",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, (2, 400, 1))],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
        [numpy_helper.from_array(np.asarray(value), name) for name, value in values.items()],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


@pytest.mark.parametrize(
    ("frame", "attributes"), [(96, {}), (45, {"onesided": 1}), (64, {"onesided": 0}), (45, {"onesided": 0})]
)
def test_frames_of_a_signal_are_transformed_by_tvm(
    frame: int,
    attributes: dict[str, int],
    imported: Callable[[Any], ImportedModel],
    host: TargetSpec,
) -> None:
    model = recogniser(frame, **attributes)
    signal = np.random.default_rng(frame).normal(size=(2, 400, 1)).astype("float32")
    found = imported(model)
    assert not found.foreign
    expected = ReferenceEvaluator(model).run(None, {"x": signal})[0]
    got = build_model(lower(found, host), {}, guess=True).open_here().run([signal])[0]
    np.testing.assert_allclose(got, expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(("version", "along"), [(17, 1), (20, 2)])
def test_each_version_of_onnx_transforms_along_its_own_axis(
    version: int, along: int, imported: Callable[[Any], ImportedModel], host: TargetSpec
) -> None:
    shape = (2, 6, 10, 1)
    graph = helper.make_graph(
        [helper.make_node("DFT", ["x"], ["y"])],
        "net",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", version)], ir_version=9)
    signal = np.random.default_rng(3).normal(size=shape).astype("float32")
    found = imported(model)
    assert not found.foreign
    expected = np.fft.fft(signal[..., 0], axis=along)
    got = build_model(lower(found, host), {}).open_here().run([signal])[0]
    np.testing.assert_allclose(got[..., 0] + 1j * got[..., 1], expected, rtol=1e-4, atol=1e-4)
