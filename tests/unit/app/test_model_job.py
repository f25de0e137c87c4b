"""A model's way through the program, with scripted workers."""

import signal
from collections.abc import Callable

from tuneloom.app.kinds.model.job import ModelJob
from tuneloom.engine.calls import Call, CallResult, Died, KilledBy, Raised, Returned
from tuneloom.errors import ModelError, NothingMeasured
from tuneloom.model import Artifact, Failure, FailureKind, Measurement, Trial
from tuneloom.testing.fake_stages import FakeStages
from tuneloom.testing.small_jobs import drive, measured_trial, small_spec, small_task
from tuneloom.tuners.tvm.models.stages import CheckResult, ModelSummary

SUMMARY = ModelSummary(
    name="net",
    digest="d",
    target="{}",
    family="llvm-512",
    tvm_version="0",
    tasks=(small_task("a"), small_task("b")),
    inputs=(),
    outputs=(),
    canary=b"",
    facts={},
)
Known = dict[str, list[Trial]]


def job_of(trials: int = 20, known: Known | None = None) -> ModelJob:
    return ModelJob(
        "job",
        small_spec(trials),
        opened=lambda _summary: known or {},
        keep=lambda _task, _trial, _artifact: None,
        lanes=3,
        tuners=1,
    )


def workers(stages: FakeStages, opened: CallResult | None = None) -> Callable[[Call], CallResult]:
    """Scripted answers: the model's stages here, the tuner's stages from the fake."""
    own: dict[str, CallResult] = {
        "open_model": opened or Returned(value=SUMMARY),
        "contest": Returned(value=[[1e-3], [2e-3], [3e-3]]),
        "compile_plain": Returned(value=None),
        "compile_model": Returned(value=1.0),
        "check_model": Returned(value=CheckResult(difference=0.0, tuned_s=(1.0,), untuned_s=(2.0,))),
    }

    def answer(call: Call) -> CallResult:
        return own.get(call.function.partition(":")[2]) or stages(call)

    return answer


def test_a_model_is_opened_tuned_and_finished() -> None:
    job = job_of()
    drive(job.begin(0.0), workers(FakeStages()))
    assert job.done and job.failure is None
    assert job.tuning is not None and job.tuning.spent == 20
    assert job.finish is not None and set(job.finish.schedules) == {"key-a", "key-b"}


def test_a_model_that_cannot_be_used_ends_the_job_with_its_own_error() -> None:
    job = job_of()
    wrong = ModelError("net.onnx: no such file")
    drive(job.begin(0.0), workers(FakeStages(), Returned(value=wrong)))
    assert job.done and job.failure is wrong


def test_an_importer_that_crashes_is_named_with_its_model() -> None:
    for result in (Raised(error="RuntimeError: oops", trace=""), Died(cause=KilledBy(signal.SIGSEGV))):
        job = job_of()
        drive(job.begin(0.0), workers(FakeStages(), result))
        assert job.done and "net.onnx can't be imported" in str(job.failure)


def test_no_success_without_a_measurement_and_the_first_error_is_told() -> None:
    stages = FakeStages(
        build=lambda _task, n: Failure(kind=FailureKind.BUILD_ERROR, message=f"error {n}\nmore of it")
    )
    job = job_of()
    drive(job.begin(0.0), workers(stages))
    assert isinstance(job.failure, NothingMeasured)
    assert str(job.failure).startswith("net: none of ")
    assert str(job.failure).endswith("trials of a succeeded; the first failed with: error 0")


def test_one_task_without_a_measurement_is_enough_to_fail() -> None:
    stages = FakeStages(
        profile=lambda task, _n: (
            Measurement(seconds=(1.0,))
            if task.name == "a"
            else Failure(kind=FailureKind.RUN_ERROR, message="b is broken")
        )
    )
    job = job_of()
    drive(job.begin(0.0), workers(stages))
    assert isinstance(job.failure, NothingMeasured) and "b is broken" in str(job.failure)


def test_a_search_that_cannot_start_is_no_success_either() -> None:
    def answer(call: Call) -> CallResult:
        if call.function.endswith("open_and_select"):
            return Raised(error="RuntimeError: no design space", trace="")
        return workers(FakeStages())(call)

    job = job_of()
    drive(job.begin(0.0), answer)
    assert isinstance(job.failure, NothingMeasured) and "no design space" in str(job.failure)


def test_trials_of_an_earlier_run_are_not_made_again() -> None:
    known = {"key-a": [measured_trial(f"p{n}", 1.0 + n) for n in range(15)]}
    job = job_of(20, known)
    stages = FakeStages(build=lambda _task, n: Artifact(payload=str(n).encode()))
    drive(job.begin(0.0), workers(stages))
    assert job.tuning is not None and job.tuning.spent == 20
    assert dict(stages.opened_with).get("a", 15) == 15


def test_a_job_told_to_stop_while_it_is_imported_still_ends_in_order() -> None:
    job = job_of()
    steps = job.begin(0.0)
    job.stopping()
    drive(steps, workers(FakeStages()))
    assert job.done and isinstance(job.failure, NothingMeasured)
