"""Transposed convolutions with channels last, as TensorFlow Lite has them."""

import numpy as np

from tuneloom.compiler.fast_import import load_tvm
from tuneloom.tuners.tvm.importing.tflite.transposed import channels_first


def test_a_transposed_convolution_with_channels_last_is_computed() -> None:
    tvm = load_tvm()
    from tvm import relax

    random = np.random.default_rng(0)
    x = random.standard_normal((1, 3, 4, 5)).astype(np.float32)
    w = random.standard_normal((5, 2, 2, 2)).astype(np.float32)
    builder = relax.BlockBuilder()
    given = relax.Var("x", relax.TensorType(x.shape, "float32"))
    with builder.function("main", [given]):
        with builder.dataflow():
            layouts = {"data_layout": "NHWC", "kernel_layout": "IOHW"}
            made = relax.op.nn.conv2d_transpose(given, relax.const(w), strides=(2, 2), **layouts)
            result = builder.emit_output(builder.emit(made))
        builder.emit_func_output(result)
    executable = relax.build(channels_first(builder.get()), "llvm")
    got = relax.VirtualMachine(executable, tvm.cpu())["main"](tvm.runtime.tensor(x)).numpy()
    # With a stride as large as the kernel nothing overlaps: every pixel becomes a square of its own.
    expected = np.einsum("nhwc,coab->nhawbo", x, w).reshape(1, 6, 8, 2)
    np.testing.assert_allclose(got, expected, rtol=1e-5, atol=1e-5)
