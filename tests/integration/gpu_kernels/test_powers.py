"""Powers in kernels for GPUs are products and roots: those kernels' own powers know no negative numbers."""

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

sys.path.append(str(Path(__file__).parent))
from relax_models import model

from tuneloom.compiler.fast_import import load_tvm
from tuneloom.tuners.tvm.lowering.powers import powers_as_products

pytestmark = pytest.mark.integration
NUMBERS = np.array([[-3.0, -0.5, 0.25, 2.0]])
POSITIVE = np.abs(NUMBERS)


def power(exponent: Any, dtype: str) -> Any:
    """A model that takes numbers to a power, as loops."""
    load_tvm()
    from tvm import relax

    def body(_builder: Any, values: list[Any]) -> Any:
        return relax.op.power(values[0], relax.const(np.array(exponent, dtype)))

    return relax.transform.LegalizeOps(powers_as_products())(model(body, (NUMBERS.shape, dtype)))


def computed(module: Any, numbers: Any) -> Any:
    tvm = load_tvm()
    from tvm import relax

    machine = relax.VirtualMachine(tvm.compile(module, tvm.target.Target("llvm")), tvm.cpu())
    return machine["main"](tvm.runtime.tensor(numbers)).numpy()


@pytest.mark.parametrize("exponent", [1, 2, 3, 5, -1, -2, -3])
def test_negative_numbers_have_whole_powers(exponent: int) -> None:
    module = power(exponent, "float32")
    assert "T.pow" not in module.script()
    np.testing.assert_allclose(computed(module, NUMBERS.astype("float32")), NUMBERS**exponent, rtol=1e-6)


@pytest.mark.parametrize("exponent", [0.5, -0.5])
def test_a_half_is_a_root(exponent: float) -> None:
    module = power(exponent, "float32")
    assert "T.pow" not in module.script()
    np.testing.assert_allclose(computed(module, POSITIVE.astype("float32")), POSITIVE**exponent, rtol=1e-6)


def test_whole_numbers_have_squares() -> None:
    module = power(2, "int32")
    assert computed(module, np.array([[-3, 0, 1, 2]], "int32")).tolist() == [[9, 0, 1, 4]]


@pytest.mark.parametrize("exponent", [[2.0, 3.0, 2.0, 3.0], [[2.0], [3.0]], 2.5, 12.0])
def test_other_powers_are_left_to_tvm(exponent: Any) -> None:
    assert "T.pow" in power(exponent, "float32").script()
