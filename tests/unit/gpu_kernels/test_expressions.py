"""Elementwise operators as text, evaluated with NumPy in the place of Triton's language."""

from math import erf
from types import SimpleNamespace

import numpy as np
import pytest

from tuneloom.backends.cuda.triton.expressions import expression
from tuneloom.backends.meaning import MeaningStep, TensorType

LANGUAGE = SimpleNamespace(
    erf=np.vectorize(erf), minimum=np.minimum, sigmoid=lambda value: 1.0 / (1.0 + np.exp(-value))
)


@pytest.mark.parametrize(("dtype", "most"), [("float32", 1e-12), ("float16", 2**-12), ("bfloat16", 2**-12)])
def test_gelu_is_as_exact_as_its_result_can_tell(dtype: str, most: float) -> None:
    tensor = TensorType(shape=(1,), dtype=dtype)
    text = expression(
        MeaningStep(operator="relax.nn.gelu", operands=(0,), result=tensor), [tensor], ["x"], None
    )
    x = np.linspace(-10.0, 10.0, 20_001)
    right = 0.5 * x * (1.0 + np.vectorize(erf)(x / np.sqrt(2.0)))
    got = eval(str(text), {"tl": LANGUAGE, "x": x})
    assert np.abs(got - right).max() < most / 4
    assert (np.abs(got - right) / (np.abs(right) + 1e-3)).max() < 4.5 * most
