"""What is printed about a run when it has ended."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from tuneloom.cli.remote.tune import _told
from tuneloom.cli.summary import compared, gained, job_line
from tuneloom.client import RemoteJob
from tuneloom.store import JobRecord, JobStatus

RESULT = {
    "latency_before_s": 0.03,
    "latency_after_s": 0.01,
    "latencies_after_s": [0.0099, 0.01, 0.0101],
    "trials": 60,
    "failures": {"build_error": 3},
    "kernels": {"a": {"note": "used"}, "b": {"note": "changed the outputs; dropped"}},
}


def record(status: JobStatus, result: dict[str, Any], **spec: Any) -> JobRecord:
    return JobRecord(id="r.net", run="r", name="net", status=status, spec=spec, result=result)


def test_a_finished_job_shows_before_and_after_trials_failures_and_its_bundle() -> None:
    first, bundle, dropped = job_line(record(JobStatus.FINISHED, RESULT, out="/fast")).splitlines()
    assert first == (
        "net: 30.00 ms untuned → 10.00 ms tuned (±1%), 3.0 times faster; 60 trials (3 build_error)"
    )
    assert bundle.strip() == "bundle: /fast"
    assert dropped.strip() == "schedules dropped because they changed the outputs: 1"


@pytest.mark.parametrize("status", [JobStatus.FAILED, JobStatus.CANCELLED])
def test_a_job_that_did_not_finish_names_no_bundle(status: JobStatus) -> None:
    assert job_line(record(status, {}, out="/fast")) == f"net: {status.value}"


def test_one_trial_is_called_one_trial() -> None:
    first = job_line(record(JobStatus.FINISHED, RESULT | {"trials": 1, "failures": {}})).splitlines()[0]
    assert first.endswith("; 1 trial")


def test_the_energy_of_a_run_is_shown_where_the_device_counted_it() -> None:
    first = job_line(record(JobStatus.FINISHED, RESULT | {"energy_j": 0.0625})).splitlines()[0]
    assert "3.0 times faster, 62.5 mJ a run; 60 trials" in first


def test_the_headline_is_the_comparison_with_the_runtime_people_would_use_instead() -> None:
    own = {"name": "onnxruntime", "latency_s": 0.015, "tuned_s": 0.01}
    first, second = job_line(record(JobStatus.FINISHED, RESULT | {"own_runtime": own})).splitlines()[:2]
    assert first == "net: 10.00 ms tuned (±1%), ONNX Runtime takes 15.00 ms: 1.50 times faster"
    assert second.startswith("  30.00 ms untuned → 10.00 ms tuned")


def test_a_model_that_is_left_in_onnx_runtime_is_called_so() -> None:
    left = {"whole": True, "latency_s": 0.01, "tvm_s": 0.012, "onnxruntime_s": 0.01}
    first, second = job_line(record(JobStatus.FINISHED, RESULT | {"left_to_onnxruntime": left})).splitlines()[
        :2
    ]
    assert first.startswith(
        "net: left in ONNX Runtime as a whole, which is faster: 10.00 ms against 12.00 ms"
    )
    assert second.startswith("  30.00 ms untuned → 10.00 ms as it is deployed")


def test_a_job_of_a_server_is_told_like_one_of_this_machine() -> None:
    details = {"name": "net", "status": "finished", "result": RESULT}
    job = cast(RemoteJob, SimpleNamespace(id="amber-heron-42", details=details))
    first, bundle, *_, last = _told(job, Path("fast")).splitlines()
    assert first.startswith("net: 30.00 ms untuned → 10.00 ms tuned (±1%), 3.0 times faster; 60 trials")
    assert (bundle.strip(), last) == ("bundle: fast", "job amber-heron-42")


@pytest.mark.parametrize(
    ("theirs_s", "words"), [(2.0, "2.00 times faster"), (1.03, "as fast"), (0.5, "2.00 times slower")]
)
def test_a_slower_model_is_called_slower(theirs_s: float, words: str) -> None:
    assert compared(1.0, theirs_s) == words


def test_several_shapes_have_a_line_each() -> None:
    rows = [
        {"latency_before_s": 0.01, "latency_after_s": 0.002},
        {"latency_before_s": 0.02, "latency_after_s": 0.008},
    ]
    shapes = {"shapes": {"x": [1, 3]}, "more_shapes": [{"x": [8, 3]}]}
    told = job_line(record(JobStatus.FINISHED, RESULT | {"by_shape": rows}, **shapes)).splitlines()
    assert told[1:3] == [
        "  x=1,3: 10.00 ms untuned → 2.00 ms tuned",
        "  x=8,3: 20.00 ms untuned → 8.00 ms tuned",
    ]


def test_a_gift_that_lost_in_the_model_is_not_called_wrong() -> None:
    kernels = {"a": {"note": "its borrowed schedule was slower inside the model and was dropped"}}
    told = job_line(record(JobStatus.FINISHED, RESULT | {"kernels": kernels})).splitlines()[-1]
    assert told.strip() == "borrowed schedules dropped because they were slower inside the model: 1"


def test_kernels_that_could_not_be_tuned_are_counted() -> None:
    kernels = {
        "a": {"note": "not tuned: 4 of 4 trials failed, the first with: no"},
        "b": {"note": "not tuned: its search ended: no design space"},
    }
    told = job_line(record(JobStatus.FINISHED, RESULT | {"kernels": kernels})).splitlines()[-2:]
    assert [line.strip() for line in told] == [
        "kernels left untuned because their trials failed: 1",
        "kernels left untuned because their search failed: 1",
    ]


@pytest.mark.parametrize("status", [JobStatus.FAILED, JobStatus.CANCELLED])
def test_a_job_without_a_result_says_how_it_ended(status: JobStatus) -> None:
    assert job_line(record(status, {"kernels": {}})) == f"net: {status.value}"


@pytest.mark.parametrize(
    ("before_s", "words"), [(3.0, "3.0 times faster"), (1.04, "no faster"), (0.9, "no faster")]
)
def test_what_is_within_the_noise_is_not_called_faster(before_s: float, words: str) -> None:
    assert gained(before_s, 1.0) == words
