"""Kernels that layers repeat are made of tensor expressions once."""

from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

from tuneloom.compiler.fast_import import load_tvm
from tuneloom.compiler.lazy import relax, te
from tuneloom.compiler.tensor_expressions import kernels_made_once


def scaled(factor: float) -> Callable[[Any], Any]:
    return lambda data: te.compute(data.shape, lambda *at: data[at] * factor, name="scaled")


def moved(data: Any, *, by: Any) -> Any:
    return te.compute(data.shape, lambda *at: data[at] + by, name="moved")


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """What TVM was asked to make."""
    load_tvm()
    from tvm.relax import block_builder

    found: list[Any] = []
    original = block_builder.gen_call_tir_inputs

    def make(*arguments: Any, **options: Any) -> Any:
        found.append(arguments)
        return original(*arguments, **options)

    monkeypatch.setattr(block_builder, "gen_call_tir_inputs", make)
    return found


def emitted(*kernels: Any) -> list[Any]:
    """Kernels applied one after the other to a tensor."""
    builder = relax.BlockBuilder()
    x = relax.Var("x", relax.TensorType((4, 3), "float32"))
    with builder.function("main", [x]):
        with builder.dataflow(), kernels_made_once():
            values = [x]
            for kernel in kernels:
                values.append(builder.emit_te(kernel, values[-1], primfunc_name_hint="kernel"))
            result = builder.emit_output(values[-1])
        builder.emit_func_output(result)
    calls = [binding.value for binding in builder.get()["main"].body.blocks[0].bindings][: len(kernels)]
    return [(str(call.args[0].name_hint), str(call.args[1].fields[0].name)) for call in calls]


def test_a_kernel_that_is_wanted_again_is_not_made_again(made: list[Any]) -> None:
    calls = emitted(scaled(2.0), scaled(2.0), partial(moved, by=1), partial(moved, by=1))
    assert len(made) == 2
    assert [name for name, _ in calls] == [calls[0][0]] * 2 + [calls[2][0]] * 2
    assert [operand for _, operand in calls] == ["x", "lv", "lv1", "lv2"]


def test_kernels_that_compute_something_else_are_made(made: list[Any]) -> None:
    emitted(scaled(2.0), scaled(3.0), partial(moved, by=1), partial(moved, by=1.0))
    assert len(made) == 4


def test_a_kernel_that_depends_on_something_unknown_is_always_made(made: list[Any]) -> None:
    class Unknown:
        def __radd__(self, other: Any) -> Any:
            return other + 1

    emitted(partial(moved, by=Unknown()), partial(moved, by=Unknown()))
    assert len(made) == 2
