"""Adaptive pools whose windows differ in size: right on a CPU, with loops that a GPU's threads can take."""

from itertools import product
from typing import Any

import numpy as np
import pytest

from tuneloom.backends.cuda.default_schedules import default_schedules
from tuneloom.backends.resolving import resolve_target
from tuneloom.compiler.lazy import relax, tvm
from tuneloom.compiler.uneven_windows import adaptive_means, pooled

pytestmark = pytest.mark.integration
SIZES = [((7, 5), (3, 2)), ((4, 9), (6, 9)), ((8, 8), (3, 5))]


def windows(extent: int, size: int) -> list[slice]:
    return [slice(n * extent // size, -(-(n + 1) * extent // size)) for n in range(size)]


def expected(image: Any, size: tuple[int, int], kind: str) -> Any:
    """What NumPy makes of an image with channels behind pixels."""
    found = np.empty((image.shape[0], *size, image.shape[3]), image.dtype)
    reduced = {"avg": np.mean, "max": np.max}[kind]
    rows, columns = (windows(extent, count) for extent, count in zip(image.shape[1:3], size, strict=True))
    for (y, row), (x, column) in product(enumerate(rows), enumerate(columns)):
        found[:, y, x] = reduced(image[:, row, column].astype("float32"), axis=(1, 2))
    return found


def made_of(extents: tuple[int, int], size: tuple[int, int], kind: str, dtype: str) -> Any:
    """A module with one kernel, `pool`."""
    builder = relax.BlockBuilder()
    image = relax.Var("image", relax.TensorType((1, *extents, 3), dtype))
    with builder.function("main", [image]):
        if kind == "avg":
            call = relax.op.nn.adaptive_avg_pool2d(image, size, "NHWC")
            done = adaptive_means()["relax.nn.adaptive_avg_pool2d"](builder, builder.normalize(call))
        else:
            done = builder.call_te(pooled, image, (1, 2), size, "max", primfunc_name_hint="adaptive_pool")
        builder.emit_func_output(builder.emit(done))
    return builder.get()


@pytest.mark.parametrize(("extents", "size"), SIZES)
@pytest.mark.parametrize(("kind", "dtype"), [("avg", "float32"), ("avg", "float16"), ("max", "float32")])
def test_uneven_windows_are_pooled_as_numpy_does(
    extents: tuple[int, int], size: tuple[int, int], kind: str, dtype: str
) -> None:
    image = np.random.default_rng(0).standard_normal((1, *extents, 3)).astype(dtype)
    machine = relax.VirtualMachine(tvm.compile(made_of(extents, size, kind, dtype), "llvm"), tvm.cpu())
    found = machine["main"](tvm.runtime.tensor(image)).numpy()
    assert found.dtype == dtype
    np.testing.assert_allclose(found, expected(image, size, kind), rtol=1e-3 if dtype == "float16" else 1e-5)


@pytest.mark.parametrize(("extents", "size"), SIZES)
@pytest.mark.parametrize("kind", ["avg", "max"])
def test_their_loops_are_bound_to_threads(extents: tuple[int, int], size: tuple[int, int], kind: str) -> None:
    target = resolve_target('{"kind": "cuda", "arch": "sm_90"}')
    with target.to_tvm():
        bound = default_schedules()(made_of(extents, size, kind, "float32"))
    assert "threadIdx.x" in bound["adaptive_pool"].script()


def test_windows_of_images_whose_size_varies_are_left_to_tvm() -> None:
    builder = relax.BlockBuilder()
    rows = tvm.tirx.Var("rows", "int64")
    image = relax.Var("image", relax.TensorType((1, 3, rows, 8), "float32"))
    with builder.function("main", [image]):
        call = builder.normalize(relax.op.nn.adaptive_avg_pool2d(image, (3, 3)))
        legalise = adaptive_means()["relax.nn.adaptive_avg_pool2d"]
        builder.emit_func_output(builder.emit(legalise(builder, call)))
    assert "adaptive_avg_pool2d" in builder.get().script()


def test_a_kernel_that_no_rule_binds_is_refused_instead_of_run_on_the_host() -> None:
    builder = relax.BlockBuilder()
    image = relax.Var("image", relax.TensorType((1, 3, 8, 8), "float32"))
    with builder.function("main", [image]):
        builder.emit_func_output(builder.emit(relax.op.nn.adaptive_avg_pool2d(image, (3, 3))))
    target = resolve_target('{"kind": "cuda", "arch": "sm_90"}')
    with target.to_tvm(), pytest.raises(RuntimeError, match="no rule binds the loops of adaptive_avg_pool2d"):
        default_schedules()(relax.transform.LegalizeOps()(builder.get()))


def test_a_kernel_that_launches_its_own_threads_is_left_as_it_is() -> None:
    builder = relax.BlockBuilder()
    x, rows = (relax.Var(name, relax.TensorType((4, 50), "float32")) for name in ("x", "rows"))
    places = relax.Var("places", relax.TensorType((4, 50), "int64"))
    with builder.function("main", [x, places, rows]):
        builder.emit_func_output(builder.emit(relax.op.scatter_elements(x, places, rows, 0, "add")))
    target = resolve_target('{"kind": "cuda", "arch": "sm_90"}')
    with target.to_tvm():
        bound = default_schedules()(relax.transform.LegalizeOps()(builder.get()))
    assert "threadIdx.x" in bound["scatter_elements"].script()
