"""Fourier transforms as matrix products against NumPy's."""

import numpy as np
import pytest

from tuneloom.compiler.fast_import import load_tvm
from tuneloom.tuners.tvm.importing.tflite.spectra import spectrum


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
