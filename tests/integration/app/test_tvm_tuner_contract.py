"""The TVM tuner fulfils the contract of tuners."""

from functools import cache

from tuneloom.backends.resolving import resolve_target
from tuneloom.compiler.fast_import import load_tvm
from tuneloom.model import Task, Tuner
from tuneloom.testing.contracts.tuner import TunerContract
from tuneloom.tuners.tvm import TvmTuner
from tuneloom.tuners.tvm.lowering.tasks import task_of


@cache
def small_product() -> Task:
    """A matrix product with a space that is searched in a moment."""
    load_tvm()
    from tvm import te

    left = te.placeholder((16, 16), name="left")
    right = te.placeholder((16, 16), name="right")
    k = te.reduce_axis((0, 16), name="k")
    product = te.compute((16, 16), lambda i, j: te.sum(left[i, k] * right[k, j], axis=k), name="product")
    function = te.create_prim_func([left, right, product]).with_attr("global_symbol", "main")
    return task_of(function, resolve_target("cpu"))


class TestTvmTuner(TunerContract):
    def tuner(self) -> Tuner:
        return TvmTuner()

    def task(self) -> Task:
        return small_product()
