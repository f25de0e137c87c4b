"""Kernels that no template fits: they have a sane default, and a search that can't fail."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tuneloom.backends.cpu.backend import CpuBackend
from tuneloom.backends.cpu.templates.generator import _default, has_template, last_resort
from tuneloom.backends.resolving import resolve_target
from tuneloom.compiler.fast_import import load_tvm
from tuneloom.model import SearchOptions, Task
from tuneloom.tuners.tvm import TvmTuner
from tuneloom.tuners.tvm.lowering.payloads import unpack_kernel


@pytest.fixture
def odd_task(matmul: Callable[[int, int, int], Task]) -> Task:
    """A product of columns that fill no vectors and rows that fill no tile."""
    return matmul(7, 5, 3)


@pytest.mark.parametrize(("rows", "depth", "columns"), [(7, 5, 3), (6, 9, 32), (1, 4, 16)])
@pytest.mark.parametrize("cores", [1, 2])
def test_default_schedule_computes_the_same(
    matmul: Callable[[int, int, int], Task], rows: int, depth: int, columns: int, cores: int
) -> None:
    module = unpack_kernel(matmul(rows, depth, columns).payload).module
    target = resolve_target("cpu", cores=cores)
    schedule = _default(module, target)
    assert schedule is not None
    random = np.random.default_rng(0)
    left, right = (
        random.standard_normal(shape).astype(np.float32) for shape in ((rows, depth), (depth, columns))
    )
    np.testing.assert_allclose(run(schedule.mod, target, left, right), left @ right, rtol=1e-5, atol=1e-5)


def run(module: Any, target: Any, left: Any, right: Any) -> Any:
    tvm = load_tvm()
    with target.to_tvm() as made:
        built = tvm.tirx.build(module, target=made)
    out = tvm.runtime.tensor(np.zeros((left.shape[0], right.shape[1]), np.float32))
    built["main"](tvm.runtime.tensor(left), tvm.runtime.tensor(right), out)
    return out.numpy()


def test_kernel_without_template_begins_with_the_default_schedule(odd_task: Task) -> None:
    odd = unpack_kernel(odd_task.payload)
    module, target = odd.module, odd.target
    assert not has_template(module, target)
    search = TvmTuner().open(odd_task, SearchOptions(seed=0, trials=4, batch=4), [])
    assert [one.origin for one in search.select(4)][:2] == ["default", "guess"]


def test_space_that_cannot_be_generated_leaves_one_schedule(
    odd_task: Task, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refusing(self: Any, module: Any, target: Any) -> Any:
        raise RuntimeError("ScheduleError: reverse-compute-at")

    monkeypatch.setattr(CpuBackend, "space", refusing)
    search = TvmTuner().open(odd_task, SearchOptions(seed=0, trials=4, batch=4), [])
    assert [one.origin for one in search.select(4)] == ["default", "guess"]
    assert search.select(4) == []


def test_last_resort_is_a_space_of_one(odd_task: Task) -> None:
    from tvm.s_tir.meta_schedule import TuneContext

    odd = unpack_kernel(odd_task.payload)
    module, target = odd.module, odd.target
    with target.to_tvm() as made:
        space = last_resort(module, target)
        (only,) = TuneContext(mod=module, target=made, space_generator=space).generate_design_space()
    default = _default(module, target)
    assert default is not None and only.mod.script() == default.mod.script()
