"""Small kernels for the TVM tuner."""

from collections.abc import Callable

import pytest

from tuneloom.backends.resolving import resolve_target
from tuneloom.compiler.fast_import import load_tvm
from tuneloom.model import Task
from tuneloom.tuners.tvm.lowering.payloads import pack_kernel


@pytest.fixture(scope="session")
def matmul() -> Callable[[int, int, int], Task]:
    """Makes the task of a matrix product by its rows, depth and columns."""

    def made(rows: int, depth: int, columns: int) -> Task:
        tvm = load_tvm()
        from tvm import te

        left, right = (
            te.placeholder((rows, depth), name="left"),
            te.placeholder((depth, columns), name="right"),
        )
        k = te.reduce_axis((0, depth), name="k")
        product = te.compute(
            (rows, columns), lambda i, j: te.sum(left[i, k] * right[k, j], axis=k), name="product"
        )
        function = te.create_prim_func([left, right, product]).with_attr("global_symbol", "main")
        module = tvm.IRModule({"main": function})
        return Task(key="matmul", name="matmul", payload=pack_kernel(module, resolve_target("cpu")))

    return made
