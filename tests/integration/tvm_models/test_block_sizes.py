"""Where vectors are narrow, two of them make a block of channels, unless channels would have to be added."""

from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from support.models.running import run_main
from tuneloom.backends.cpu.layouts.blocking import block_layouts
from tuneloom.backends.cpu.layouts.shapes.block_sizes import block_size
from tuneloom.backends.cpu.target import cpu_of
from tuneloom.backends.cpu.templates.kernel import shape_of
from tuneloom.backends.cpu.templates.stages import staged_sketch
from tuneloom.backends.resolving import resolve_target
from tuneloom.compiler.fast_import import load_tvm
from tuneloom.tuners.tvm.lowering.tasks import kernel_module

NARROW = 4


def convolutions(*channels: int, dtype: str = "float32") -> Any:
    """A module of 3×3 convolutions, one after the other, on an image of 9×9."""
    load_tvm()
    from tvm import relax

    numbers = np.random.default_rng(0)
    builder = relax.BlockBuilder()
    given = relax.Var("x", relax.TensorType((1, channels[0], 9, 9), dtype))
    with builder.function("main", [given]):
        with builder.dataflow():
            made = given
            for inside, outside in pairwise(channels):
                weight = numbers.standard_normal((outside, inside, 3, 3)).astype(dtype)
                made = builder.emit(relax.op.nn.conv2d(made, relax.const(weight), padding=1))
            result = builder.emit_output(made)
        builder.emit_func_output(result)
    return builder.get()


def test_narrow_vectors_lie_together_in_twos() -> None:
    assert block_size(convolutions(16, 24, 40), NARROW) == 2 * NARROW


def test_the_few_channels_of_a_picture_do_not_count() -> None:
    assert block_size(convolutions(3, 16, 8), NARROW) == 2 * NARROW


def test_no_channels_are_added_for_it() -> None:
    assert block_size(convolutions(16, 12, 20), NARROW) == NARROW


def test_wide_vectors_are_blocks_of_their_own() -> None:
    assert block_size(convolutions(64, 64), 16) == 16


def test_whole_numbers_keep_single_vectors() -> None:
    assert block_size(convolutions(16, 16, dtype="int32"), NARROW) == NARROW


@pytest.mark.parametrize("channels", [(3, 16, 8), (16, 64, 64, 16), (8, 12, 20)])
def test_a_network_in_larger_blocks_computes_the_same(channels: tuple[int, ...]) -> None:
    module = convolutions(*channels)
    blocked = block_layouts(module, NARROW, block=2 * NARROW)
    data = np.random.default_rng(1).standard_normal((1, channels[0], 9, 9)).astype(np.float32)
    assert "nn.conv2d(" not in str(blocked["main"])
    np.testing.assert_allclose(run_main(blocked, data), run_main(module, data), rtol=1e-3, atol=1e-3)


def test_transforms_take_one_vector_of_a_block_at_a_time() -> None:
    load_tvm()
    from tvm import s_tir, te

    from tuneloom.backends.cpu.layouts.kernels.winograd import winograd_output

    target = cpu_of(resolve_target("cpu", cores=1))
    products = te.placeholder((36, 2, 4, 2 * target.lanes), name="products")
    module = kernel_module(te.create_prim_func([products, winograd_output(products, rows=8, cols=8)]))
    shape, schedule = shape_of(module, target.lanes), s_tir.Schedule(module)
    assert shape is not None
    staged_sketch(schedule, shape, target)
    assert f"T.vectorized({target.lanes})" in str(schedule.mod)
    assert f"T.vectorized({2 * target.lanes})" not in str(schedule.mod)
