"""What users give to the kernel tuner, what it makes of it, and the contract it fulfils."""

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tuneloom.errors import SpaceError
from tuneloom.kernel import CudaRunner, Kernel, Ran, Space, TritonKernel
from tuneloom.model import (
    Failure,
    FailureKind,
    MeasuringRules,
    ModelRecipe,
    ModelSummary,
    SearchOptions,
    Task,
    Tuner,
)
from tuneloom.testing.contracts.tuner import TunerContract
from tuneloom.tuners.kernel import SEARCHES, STARTS
from tuneloom.tuners.kernel.cargo import Cargo, for_build, for_profile, runner_of, space_of, task_of
from tuneloom.tuners.kernel.kernel import as_ran, spare_process
from tuneloom.tuners.kernel.opening import keep_functions, kept_functions, open_kernel
from tuneloom.tuners.kernel.search.searches import SEARCHES as BUILT_IN
from tuneloom.tuners.kernel.search.terms import StartingPoint
from tuneloom.tuners.kernel.searching import insight, presample
from tuneloom.tuners.kernel.tuner import KernelTuner

SPACE = Space({"a": [1, 2, 4, 8], "b": [1, 2, 4, 8]}, where=["a * b <= 32"])


def build(knobs: dict[str, Any]) -> dict[str, Any]:
    if knobs["a"] * knobs["b"] > 16:
        raise ValueError("too large")
    return knobs


def run(knobs: dict[str, Any]) -> float:
    return 1.0 / (knobs["a"] + 2 * knobs["b"])


KERNEL = Kernel("sizes", SPACE, build, run)


class TestKernelTuner(TunerContract):
    def tuner(self) -> Tuner:
        return KernelTuner()

    def task(self) -> Task:
        return task_of(KERNEL)

    def test_the_first_candidate_is_the_default(self) -> None:
        """Knobs have no default; a search starts where it is told to."""
        options = SearchOptions(seed=1, trials=10, batch=1, extra={"init": "default"})
        (first,) = KernelTuner().open(self.task(), options, []).select(1)
        assert first.configuration == '{"a": 1, "b": 1}'


def test_the_names_that_the_command_line_offers_are_those_there_are() -> None:
    assert set(SEARCHES) == set(BUILT_IN)
    assert set(STARTS) == {start.value for start in StartingPoint}


@pytest.mark.parametrize(
    ("returned", "checked", "wanted"),
    [
        (0.5, False, Ran((0.5,))),
        ([0.5, 0.25], False, Ran((0.5, 0.25))),
        ((0.5, 0.25), False, Ran((0.5, 0.25))),
        ((0.5, 3.0), True, Ran((0.5,), 3.0)),
        ((0.5, [1]), False, Ran((0.5,), [1])),
        (([0.5, 0.25], "out"), True, Ran((0.5, 0.25), "out")),
    ],
)
def test_runners_may_return_times_in_several_ways(returned: Any, checked: bool, wanted: Ran) -> None:
    assert as_ran(returned, checked) == wanted


def test_a_runner_without_a_time_is_told_so() -> None:
    with pytest.raises(TypeError, match="a runner returns seconds, got str"):
        as_ran("fast")


def test_every_stage_gets_its_part() -> None:
    task = task_of(Kernel("k", SPACE, build, run, check=np.ones(3)), "f00d")
    assert task.key == "kernel:k:f00d" and task.shapes == "4 x 4"
    assert space_of(task).size == SPACE.size
    parts: Cargo = pickle.loads(for_build(task).payload)
    assert parts.build and not parts.run and not parts.space
    _, check = runner_of(for_profile(task))
    assert check.tolist() == [1, 1, 1]


def test_the_device_is_what_the_runner_says() -> None:
    triton = TritonKernel("k.py", "k", 0)
    assert KERNEL.device_key == "cpu" and not KERNEL.builds_on_device
    assert Kernel("k", SPACE, build, run, device="npu").device_key == "npu"
    assert Kernel("k", SPACE, build, CudaRunner((), ("1",), ("1",))).device_key == "cuda"
    on_gpu = Kernel("k", SPACE, triton.build, triton.run)
    assert on_gpu.device_key == "cuda" and on_gpu.builds_on_device


def test_functions_are_kept_in_a_file_and_opened_in_a_worker(tmp_path: Path) -> None:
    path = keep_functions(KERNEL, tmp_path / "kernels")
    assert kept_functions(path).kernel.space.size == SPACE.size
    summary = open_kernel(ModelRecipe(key="k", source=str(path), shapes={}, target="cpu"))
    assert isinstance(summary, ModelSummary)
    assert summary.tasks[0].name == "sizes" and summary.facts == {"builds_on_device": False}


def test_a_file_that_is_no_kernel_is_a_value(tmp_path: Path) -> None:
    path = tmp_path / "broken.kernel"
    path.write_bytes(b"no pickle")
    error = open_kernel(ModelRecipe(key="k", source=str(path), shapes={}, target="cpu"))
    assert isinstance(error, SpaceError) and "can't be loaded" in str(error)


def test_what_can_not_be_carried_is_refused_at_once(tmp_path: Path) -> None:
    with (tmp_path / "open.txt").open("w") as file, pytest.raises(SpaceError, match="can't be carried"):
        keep_functions(Kernel("k", SPACE, build, lambda knobs: file.write("x")), tmp_path)


class Broken:
    """A runner whose preparation fails."""

    def prepared(self) -> "Broken":
        raise RuntimeError("no reference today")

    def __call__(self, built: Any) -> float:
        return 1.0


def test_a_reference_that_fails_ends_the_job_and_not_every_trial(tmp_path: Path) -> None:
    path = keep_functions(Kernel("k", SPACE, build, Broken()), tmp_path)
    error = open_kernel(ModelRecipe(key="k", source=str(path), shapes={}, target="cpu"))
    assert isinstance(error, SpaceError) and "no reference today" in str(error)


def refuse_politely(knobs: dict[str, Any]) -> float:
    """A runner that fails and knows that nothing is broken."""
    error = RuntimeError("too many threads")
    spare_process(error)
    raise error


def test_a_failed_run_spoils_its_process_and_a_wrong_result_does_not() -> None:
    tuner, rules = KernelTuner(), MeasuringRules()

    def outcome(kernel: Kernel) -> Failure:
        task = task_of(kernel)
        (candidate,) = tuner.open(task, SearchOptions(seed=0, trials=9, batch=1), []).select(1)
        artifact = tuner.build(task, candidate, rules)
        assert not isinstance(artifact, Failure)
        failure = tuner.profile(task, artifact, rules, None)
        assert isinstance(failure, Failure)
        return failure

    one = Space({"a": [1]})
    broken = outcome(Kernel("k", one, lambda knobs: knobs, lambda knobs: 1 / 0))
    assert broken.kind is FailureKind.RUN_ERROR and broken.spoils_worker
    spared = outcome(Kernel("k", one, lambda knobs: knobs, refuse_politely))
    assert spared.kind is FailureKind.RUN_ERROR and not spared.spoils_worker
    wrong = outcome(Kernel("k", one, lambda knobs: knobs, lambda knobs: (1.0, 2), check=3))
    assert wrong.kind is FailureKind.WRONG_RESULT and not wrong.spoils_worker


def test_presampling_in_a_worker_finds_what_does_not_build() -> None:
    task, options = task_of(KERNEL), SearchOptions(seed=0, trials=9, batch=1)
    built: list[tuple[str, bool]] = []
    batch = presample("one", task, options, [])
    while batch:
        fresh = [(c.configuration, not isinstance(_built(task, c), Failure)) for c in batch]
        built += fresh
        batch = presample("one", task, options, fresh)
    assert {builds for _, builds in built} == {True, False}
    assert presample("another process", task, options, built) == []


def _built(task: Task, candidate: Any) -> Any:
    return KernelTuner().build(task, candidate, MeasuringRules())


def test_looking_back_tells_pairs_expectations_and_importance() -> None:
    task, options = task_of(KERNEL), SearchOptions(seed=0, trials=9, batch=4)
    contract = TestKernelTuner()
    search = KernelTuner().open(task, options, [])
    trials = [contract._trial(candidate) for candidate in search.select(SPACE.size)]
    told = insight(task, options, trials)
    (pair,) = told["pairs"]
    cells = {(x, y): (valid, failed) for x, y, valid, failed, _ in pair["cells"]}
    assert cells[4, 4] == (1, 0) and cells[8, 4] == (0, 1)
    chances = {(x, y): chance for x, y, *_, chance in pair["cells"]}
    assert chances[1, 1] > chances[8, 4]
    assert set(told["importance"]) == {"a", "b"}
