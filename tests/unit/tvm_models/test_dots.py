"""Weights as 8-bit whole numbers: their steps, their order, and what the zero point adds."""

import numpy as np

from tuneloom.backends.cpu.layouts.kernels.dots import (
    Scale,
    factor_and_shift,
    pack_dot_panels,
    pack_dots,
    quantise_weight,
)

RANDOM = np.random.default_rng(3)


def test_every_channel_has_a_step_of_its_own_and_is_off_by_half_a_step_at_most() -> None:
    weight = (RANDOM.standard_normal((6, 5, 3, 3)) * np.logspace(-3, 2, 6)[:, None, None, None]).astype(
        np.float32
    )
    whole, step = quantise_weight(weight)
    assert whole.dtype == np.int8 and np.abs(whole).max(axis=(1, 2, 3)).tolist() == [127] * 6
    off = np.abs(whole * step[:, None, None, None] - weight)
    assert (off <= 0.5001 * step[:, None, None, None]).all()


def test_a_channel_of_zeros_stays_zero() -> None:
    whole, step = quantise_weight(np.zeros((2, 3), np.float32))
    assert not whole.any() and (step > 0).all()


def test_sums_of_whole_numbers_give_the_product_whatever_the_zero_point_is() -> None:
    weight, data = RANDOM.standard_normal((4, 8)), RANDOM.uniform(-1, 3, 8)
    whole, step = quantise_weight(weight.astype(np.float32))
    scale = Scale(step=4 / 255, zero=-64, dtype="int8")
    rounded = np.clip(np.rint(data / scale.step) + scale.zero, *scale.limits).astype(np.int64)
    factor, shift = factor_and_shift(whole, step, np.ones(4, np.float32), scale)
    sums = whole.astype(np.int64) @ rounded
    np.testing.assert_allclose(sums * factor + shift, weight @ data + 1, atol=0.05)


def test_weights_lie_in_fours_as_the_instruction_reads_them() -> None:
    whole = RANDOM.integers(-127, 127, (6, 10, 3, 3)).astype(np.int8)
    packed = pack_dots(whole, 4)
    assert packed.shape == (2, 3, 3, 3, 1, 4, 4)
    assert packed[1, 2, 1, 2, 0, 1, 1] == whole[5, 9, 1, 2] and not packed[1, :, :, :, :, 2:].any()
    panels = pack_dot_panels(whole[:, :8, 0, 0], 4)
    assert panels.shape == (2, 2, 4, 4) and panels[1, 1, 1, 3] == whole[5, 7, 0, 0]
