"""Inputs of a model lie where they lay in the run before, whatever their shapes and types."""

from typing import Any

import numpy as np
import pytest

from tuneloom.compiler.fast_import import load_tvm
from tuneloom.tuners.tvm.runner.tensors import InputTensors, array_of

ONE = np.arange(6, dtype=np.float32).reshape(2, 3)


@pytest.fixture
def inputs() -> InputTensors:
    tvm = load_tvm()
    return InputTensors(tvm.runtime.tensor, tvm.cpu())


def test_values_of_a_later_run_replace_those_of_the_one_before(inputs: InputTensors) -> None:
    first, second = inputs.holding([ONE])[0], inputs.holding([-ONE])[0]
    assert first is second and np.array_equal(array_of(second), -ONE)


def test_values_of_another_shape_or_type_get_tensors_of_their_own(inputs: InputTensors) -> None:
    for value in (ONE, ONE[:1], ONE.astype(np.int64), ONE > 2, ONE.astype(np.float16)):
        (tensor,) = inputs.holding([value])
        assert np.array_equal(array_of(tensor), value) and array_of(tensor).dtype == value.dtype


def test_values_that_are_not_in_order_are_copied_in_order(inputs: InputTensors) -> None:
    assert np.array_equal(array_of(inputs.holding([ONE.T])[0]), ONE.T)
    assert np.array_equal(array_of(inputs.holding([-ONE.T])[0]), -ONE.T)


def test_a_type_that_numpy_lacks_goes_the_long_way(inputs: InputTensors) -> None:
    import ml_dtypes

    value: Any = ONE.astype(ml_dtypes.bfloat16)
    found = array_of(inputs.holding([value])[0])
    assert found.tobytes() == value.tobytes()


def test_an_output_is_not_changed_by_the_next_run(inputs: InputTensors) -> None:
    kept = array_of(inputs.holding([ONE])[0])
    inputs.holding([-ONE])
    assert np.array_equal(kept, ONE) and kept.flags.writeable
