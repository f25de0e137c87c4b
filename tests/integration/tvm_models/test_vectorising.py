"""Loops that round or divide by roots are computed in vectors."""

import math
import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tuneloom.compiler.fast_import import load_tvm
from tuneloom.compiler.lazy import te, tirx

pytestmark = pytest.mark.integration
VALUES = np.linspace(-4.5, 4.5, 64, dtype=np.float32)  # halves among them, which are rounded to even


def computed(function: Callable[[Any], Any], values: Any) -> tuple[Any, bool]:
    """What a vectorised loop with a function computes, and whether it was taken apart."""
    tvm = load_tvm()
    data = te.placeholder(values.shape, "float32", name="data")
    made = te.compute(values.shape, lambda at: function(data[at]), name="made")
    schedule = tvm.s_tir.Schedule(te.create_prim_func([data, made]))
    (loop,) = schedule.get_loops(schedule.get_sblock("made"))
    schedule.vectorize(schedule.split(loop, [None, 16])[1])
    apart = re.compile(r"\bat_1_s\b")  # as TVM calls the loop then
    found: list[str] = []

    @tvm.instrument.pass_instrument
    class Watching:
        """Keeps what the pass leaves that makes vectors."""

        def run_after_pass(self, module: Any, info: Any) -> None:
            if info.name == "tirx.VectorizeLoop":
                found.append(module.script())

    with tvm.transform.PassContext(instruments=[Watching()]):
        built = tvm.tirx.build(schedule.mod, target="llvm")
    result = tvm.runtime.tensor(np.zeros_like(values))
    built["main"](tvm.runtime.tensor(values), result)
    (loops,) = found
    return result.numpy(), apart.search(loops) is not None


def test_rounding_to_even() -> None:
    found, apart = computed(tirx.nearbyint, VALUES)
    np.testing.assert_array_equal(found, np.rint(VALUES))
    assert not apart


def test_the_root_of_a_reciprocal() -> None:
    found, apart = computed(tirx.rsqrt, np.abs(VALUES))
    np.testing.assert_allclose(found, 1 / np.sqrt(np.abs(VALUES)), rtol=1e-6)
    assert not apart


def test_a_function_without_a_form_for_vectors_is_computed_one_by_one() -> None:
    found, apart = computed(tirx.erf, VALUES)
    np.testing.assert_allclose(found, np.vectorize(math.erf)(VALUES), atol=1e-6)
    assert apart
