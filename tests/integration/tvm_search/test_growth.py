"""Steps that would grow without bounds if all were inlined into each other."""

from typing import Any

import numpy as np
import pytest

from tuneloom.backends.base import GENERAL_SPACE
from tuneloom.backends.cpu.templates.generator import first_guess, space_for
from tuneloom.backends.cpu.templates.growth import outgrows
from tuneloom.backends.finding import backend_of
from tuneloom.backends.resolving import resolve_target
from tuneloom.compiler.fast_import import load_tvm
from tuneloom.tuners.tvm.search.opening import is_template

LENGTH = 64


def chain(steps: int) -> Any:
    """Each step reads what the one before made five times."""
    tvm = load_tvm()
    from tvm import te

    given = last = te.placeholder((LENGTH,), name="x")
    for number in range(steps):
        last = _step(te, tvm, last, number)
    return tvm.IRModule({"main": te.create_prim_func([given, last])})


def _step(te: Any, tvm: Any, before: Any, number: int) -> Any:
    def compute(i: Any) -> Any:
        smaller = tvm.tirx.Select(before[i] > 0, before[i], -before[i])
        return before[i] * before[i] / (smaller + tvm.tirx.const(1.0, "float32"))

    return te.compute((LENGTH,), compute, name=f"step{number}")


def computed(x: Any, steps: int) -> Any:
    for _ in range(steps):
        x = x * x / (np.abs(x) + np.float32(1))
    return x


@pytest.mark.parametrize(("steps", "too_many"), [(3, False), (12, True)])
def test_a_chain_of_steps_compiles_however_long_it_is(steps: int, too_many: bool) -> None:
    tvm = load_tvm()
    module, target = chain(steps), resolve_target("llvm")
    assert outgrows(module) is too_many
    schedule = first_guess(module, target)
    assert schedule is not None
    blocks = schedule.get_child_blocks(schedule.get_sblock("root"))
    assert (len(blocks) > 1) is too_many
    x = np.linspace(-3, 3, LENGTH, dtype=np.float32)
    out = tvm.runtime.tensor(np.zeros_like(x))
    tvm.compile(schedule.mod, target=target.to_tvm())["main"](tvm.runtime.tensor(x), out)
    np.testing.assert_allclose(out.numpy(), computed(x, steps), rtol=1e-4)


def test_such_a_chain_is_not_given_to_the_general_space() -> None:
    assert is_template(space_for(chain(30), resolve_target("llvm")))


def test_on_a_gpu_it_keeps_the_general_space_whose_loops_are_bound_to_threads() -> None:
    gpu = resolve_target('{"kind": "cuda", "arch": "sm_90"}')
    assert backend_of(gpu).space(chain(30), gpu) == GENERAL_SPACE
