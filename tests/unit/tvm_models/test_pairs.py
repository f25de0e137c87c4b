"""Weights as bfloat16 numbers: how they are rounded, and their order."""

import numpy as np
import pytest

from tuneloom.backends.cpu.layouts.kernels.pairs import pack_pair_panels, pack_pairs, rounded
from tuneloom.errors import InputError
from tuneloom.model import Budget, JobSpec

RANDOM = np.random.default_rng(3)


def single(halves: np.ndarray) -> np.ndarray:
    return (halves.astype(np.uint32) << 16).view(np.float32)


def test_weights_are_rounded_to_the_nearest_number_and_ties_to_even() -> None:
    import ml_dtypes

    weight = np.concatenate([RANDOM.standard_normal(500) * 10.0**4, [0.0, -0.0, np.inf, -np.inf, 1.00390625]])
    weight = weight.astype(np.float32)
    assert rounded(weight).tobytes() == weight.astype(ml_dtypes.bfloat16).tobytes()


def test_weights_lie_in_pairs_as_the_instruction_reads_them() -> None:
    weight = np.arange(6 * 10 * 9, dtype=np.float32).reshape(6, 10, 3, 3) % 256  # exact in bfloat16
    packed = pack_pairs(weight, 4)
    assert packed.shape == (2, 3, 3, 3, 2, 4, 2)
    assert single(packed)[1, 2, 1, 2, 0, 1, 1] == weight[5, 9, 1, 2]
    assert not packed[1, :, :, :, :, 2:].any()
    panels = pack_pair_panels(weight[:, :8, 0, 0].T, 4)
    assert panels.shape == (2, 4, 4, 2) and single(panels)[1, 3, 1, 1] == weight[5, 7, 0, 0]


def test_samples_are_for_int8_alone() -> None:
    JobSpec(name="net", model="net.onnx", budget=Budget(trials=1), dtype="bfloat16")
    with pytest.raises(InputError, match="bfloat16 takes no --samples"):
        JobSpec(name="net", model="net.onnx", budget=Budget(trials=1), dtype="bfloat16", samples="x.npz")
    with pytest.raises(InputError, match="int8 needs --samples"):
        JobSpec(name="net", model="net.onnx", budget=Budget(trials=1), dtype="int8")
