"""How the end of a call becomes the outcome of a trial."""

import signal

import pytest

from tuneloom.app.tasks.outcomes import built, profiled
from tuneloom.engine.calls import (
    CallResult,
    Died,
    ExitedWith,
    KilledBy,
    OutOfMemory,
    Raised,
    Returned,
    TimedOut,
)
from tuneloom.model import Artifact, Failure, FailureKind, Measurement


def test_what_a_stage_returns_is_passed_on() -> None:
    artifact, measurement = Artifact(payload=b"so"), Measurement(seconds=(1.0,))
    refused = Failure(kind=FailureKind.BUILD_ERROR, message="too many threads")
    assert built(Returned(value=artifact)) is artifact
    assert built(Returned(value=refused)) is refused
    assert profiled(Returned(value=measurement)) is measurement


@pytest.mark.parametrize(
    ("result", "when_built", "when_profiled"),
    [
        (Raised(error="ValueError: no", trace=""), "build_error", "run_error"),
        (TimedOut(after_s=3.0), "build_timeout", "run_timeout"),
        (Died(cause=KilledBy(signal.SIGSEGV)), "build_error", "run_error"),
        (Died(cause=ExitedWith(1)), "build_error", "run_error"),
        (Died(cause=KilledBy(signal.SIGKILL)), "worker_lost", "worker_lost"),
        (Died(cause=OutOfMemory()), "worker_lost", "worker_lost"),
    ],
    ids=str,
)
def test_a_call_that_came_back_without_a_value_is_a_failure_of_its_kind(
    result: CallResult, when_built: str, when_profiled: str
) -> None:
    assert built(result).kind == when_built
    assert profiled(result).kind == when_profiled
    assert built(result).message
