"""Convolutions with channels last read packed weights, and put zeros around images themselves."""

from typing import Any

import numpy as np
import pytest

from support.models.running import run_main
from tuneloom.backends.cpu.layouts.blocking import block_layouts
from tuneloom.compiler.fast_import import load_tvm

LANES = 4
CASES = {
    "a point": ((1, 3, 5, 6), (1, 1, 6, 24), (1, 1), (0, 0, 0, 0)),
    "a point with a stride": ((1, 4, 6, 5), (1, 1, 5, 9), (2, 2), (0, 0, 0, 0)),
    "a padded window": ((2, 5, 7, 3), (3, 3, 3, 16), (1, 1), (1, 1, 1, 1)),
    "an uneven window with a stride": ((1, 9, 8, 2), (3, 2, 2, 7), (2, 1), (1, 0, 0, 2)),
    "a row that no tile divides": ((1, 2, 17, 4), (2, 1, 4, 10), (1, 1), (0, 0, 1, 0)),
}


def convolution(data: Any, weight: Any, *, padded: Any = None, **options: Any) -> Any:
    """A module with a convolution, of an image that gets zeros around it before if `padded` says so."""
    load_tvm()
    from tvm import relax

    builder = relax.BlockBuilder()
    given = relax.Var("x", relax.TensorType(data.shape, "float32"))
    with builder.function("main", [given]):
        with builder.dataflow():
            read = given if padded is None else builder.emit(relax.op.nn.pad(given, padded))
            layouts = {"data_layout": "NHWC", "kernel_layout": options.pop("kernel_layout", "HWIO")}
            made = relax.op.nn.conv2d(read, relax.const(weight), **layouts, **options)
            result = builder.emit_output(builder.emit(made))
        builder.emit_func_output(result)
    return builder.get()


def values(*shape: int) -> Any:
    return np.random.default_rng(len(shape)).standard_normal(shape).astype(np.float32)


@pytest.mark.parametrize(("image", "window", "strides", "padding"), CASES.values(), ids=CASES.keys())
def test_weights_are_packed_and_the_result_is_the_same(
    image: tuple[int, ...], window: tuple[int, ...], strides: tuple[int, int], padding: tuple[int, ...]
) -> None:
    data, weight = values(*image), values(*window)
    module = convolution(data, weight, strides=strides, padding=padding)
    packed = block_layouts(module, LANES)
    assert "nn.conv2d(" not in str(packed["main"])
    np.testing.assert_allclose(run_main(packed, data), run_main(module, data), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("groups", [1, 4])
def test_zeros_around_an_image_are_the_convolution_s_own(groups: int) -> None:
    data, channels = values(1, 6, 6, 4), 4 if groups == 1 else 1
    weight = values(3, 3, channels, 8) if groups == 1 else values(3, 3, 4, 1)
    layout = "HWIO" if groups == 1 else "HWOI"
    widths = [0, 0, 0, 1, 1, 0, 0, 0]
    module = convolution(
        data, weight, padded=widths, strides=(2, 2), groups=groups, kernel_layout=layout, padding=(0, 0, 0, 1)
    )
    joined = block_layouts(module, LANES)
    assert "pad_width" not in str(_without_unread(joined)["main"])
    np.testing.assert_allclose(run_main(joined, data), run_main(module, data), rtol=1e-4, atol=1e-5)


def test_zeros_that_are_a_channel_stay() -> None:
    data = values(1, 6, 6, 4)
    module = convolution(data, values(3, 3, 5, 8), padded=[0, 0, 1, 1, 1, 1, 0, 1])
    blocked = block_layouts(module, LANES)
    assert "pad_width" in str(_without_unread(blocked)["main"])
    np.testing.assert_allclose(run_main(blocked, data), run_main(module, data), rtol=1e-4, atol=1e-5)


def _without_unread(module: Any) -> Any:
    from tvm import relax

    return relax.transform.DeadCodeElimination()(module)
