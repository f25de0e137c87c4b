"""A kernel that crashes, hangs, lies or floods costs one trial, and the run goes on."""

import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tuneloom.errors import BudgetError, NothingMeasured
from tuneloom.kernel import KernelResult, Space, tune_kernel
from tuneloom.model import FailureKind, Trial

SPACE = Space({"kind": ["good", "bad"], "level": [1, 2, 3]})


def built(configuration: dict[str, Any]) -> dict[str, Any]:
    return dict(configuration)


def tuned(run: Callable[[Any], Any], **options: Any) -> KernelResult:
    """Tune the whole space with this runner."""
    options = {"build": built, "run_timeout_s": 300.0} | options
    return tune_kernel(SPACE, run=run, trials=6, **options)


def runner(misbehave: Callable[[], Any]) -> Callable[[Any], Any]:
    """A runner whose bad configurations misbehave."""

    def run(configuration: dict[str, Any]) -> float:
        if configuration["kind"] == "bad":
            misbehave()
        return 0.1 * float(configuration["level"])

    return run


def crash() -> None:
    os.kill(os.getpid(), signal.SIGSEGV)


def leave() -> None:
    os._exit(3)


def hang() -> None:
    signal.pause()


def raise_error() -> None:
    raise RuntimeError("no such luck")


@pytest.mark.parametrize(
    ("misbehave", "kind", "message"),
    [
        (crash, FailureKind.RUN_ERROR, "SIGSEGV"),
        (leave, FailureKind.RUN_ERROR, "exit code 3"),
        (raise_error, FailureKind.RUN_ERROR, "no such luck"),
    ],
)
def test_each_misbehaviour_costs_one_trial(
    misbehave: Callable[[], Any], kind: FailureKind, message: str
) -> None:
    heard: list[Trial] = []
    result = tuned(runner(misbehave), listener=heard.append)
    assert result.best == {"kind": "good", "level": 1}
    assert result.seconds == pytest.approx(0.1)
    assert result.failures == {kind: 3}
    assert len(result.trials) == len(heard) == 6
    texts = [t.outcome.message for t in heard if t.seconds is None]  # type: ignore[union-attr]
    assert all(message in text for text in texts)


def test_a_kernel_that_hangs_costs_one_trial_and_the_time_it_has() -> None:
    space = Space({"kind": ["good", "bad"], "level": [1]})
    result = tune_kernel(space, built, runner(hang), trials=2, run_timeout_s=6.0)
    assert result.best == {"kind": "good", "level": 1}
    assert result.failures == {FailureKind.RUN_TIMEOUT: 1}
    assert any("ended after 6 s" in getattr(trial.outcome, "message", "") for trial in result.trials)


def test_megabytes_of_output_are_drained() -> None:
    def run(configuration: dict[str, Any]) -> float:
        for _ in range(50):
            sys.stdout.write("x" * 50_000)
            os.write(2, b"y" * 50_000)
        return 0.1 * float(configuration["level"])

    result = tuned(run, seed=1)
    assert not result.failures
    assert result.best["level"] == 1


def test_a_wrong_result_is_never_the_best() -> None:
    def run(configuration: dict[str, Any]) -> tuple[float, list[int]]:
        wrong = configuration["kind"] == "bad"
        return (0.001 if wrong else 0.1), ([1, 3] if wrong else [1, 2])

    result = tuned(run, check=[1, 2])
    assert result.best["kind"] == "good"
    assert result.failures == {FailureKind.WRONG_RESULT: 3}
    assert tuned(run, check=lambda output: output[1] == 2).best["kind"] == "good"


def test_a_build_that_raises_or_dies_is_a_build_error() -> None:
    def build(configuration: dict[str, Any]) -> dict[str, Any]:
        if configuration["kind"] == "bad":
            if configuration["level"] == 1:
                os.abort()
            raise ValueError("does not compile")
        return configuration

    result = tuned(lambda configuration: 0.1 * configuration["level"], build=build)
    assert result.failures == {FailureKind.BUILD_ERROR: 3}


def test_a_time_that_is_none_is_a_run_error() -> None:
    result = tuned(lambda c: -1.0 if c["kind"] == "bad" else 0.5)
    assert result.failures == {FailureKind.RUN_ERROR: 3}


def test_a_kernel_that_never_works_says_why() -> None:
    with pytest.raises(NothingMeasured, match="all 6 configurations failed; 6 with run_error"):
        tuned(lambda _: 1 / 0)


def test_a_budget_without_trials_is_refused() -> None:
    with pytest.raises(BudgetError, match="trials must be a whole number of at least 1, got 0"):
        tune_kernel(SPACE, built, lambda _: 1.0, trials=0)


def test_no_process_stays_behind(tmp_path: Path) -> None:
    note = tmp_path / "pid"

    def run(configuration: dict[str, Any]) -> float:
        note.write_text(str(os.getpid()))
        return 1.0

    tuned(run)
    with pytest.raises(ProcessLookupError):
        os.kill(int(note.read_text()), 0)
