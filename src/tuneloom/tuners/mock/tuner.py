"""The mock tuner: real processes, real waiting, real crashes, but nothing is compiled."""

import json
import os
import signal
import time
from collections.abc import Sequence
from itertools import islice
from random import Random

from tuneloom.model import (
    Artifact,
    Candidate,
    Failure,
    FailureKind,
    Measurement,
    MeasuringRules,
    SearchOptions,
    StageKind,
    Task,
    Trial,
)
from tuneloom.tuners.mock.kernel import MockKernel, mock_tasks

_DEFAULT_ORIGIN = "default"
_FOR_EVER_S = 3600.0
_BUILD_FAILURES = (FailureKind.BUILD_ERROR, FailureKind.BUILD_TIMEOUT)


class MockSearch:
    """Half of a batch lies next to the best point known, half anywhere; the same for the same seed."""

    def __init__(self, kernel: MockKernel, options: SearchOptions, known: Sequence[Trial]) -> None:
        self._kernel = kernel
        self._fresh = list(range(1, kernel.size))
        Random(options.seed).shuffle(self._fresh)
        self._proposed: set[int] = set()
        self._best: tuple[float, int] | None = None
        for trial in known:
            self._proposed.add(point_of(trial.candidate))
        self._learn(known)

    def select(self, count: int) -> list[Candidate]:
        _spend(self._kernel, StageKind.SELECT)
        points = [0] if 0 not in self._proposed else []
        points += self._neighbours((count - len(points)) // 2)
        self._proposed.update(points)
        while len(points) < count and self._fresh:
            point = self._fresh.pop()
            if point not in self._proposed:
                self._proposed.add(point)
                points.append(point)
        return [self._candidate(point) for point in points]

    def update(self, trials: Sequence[Trial]) -> None:
        _spend(self._kernel, StageKind.UPDATE)
        self._learn(trials)

    def _learn(self, trials: Sequence[Trial]) -> None:
        for trial in trials:
            if trial.seconds is not None:
                found = (trial.seconds, point_of(trial.candidate))
                self._best = min(self._best or found, found)

    def _neighbours(self, count: int) -> list[int]:
        """The points next to the best one that nobody has proposed, nearest first."""
        if self._best is None:
            return []
        middle, size = self._best[1], self._kernel.size
        outwards = (point for step in range(1, size) for point in (middle - step, middle + step))
        fresh = (point for point in outwards if 0 < point < size and point not in self._proposed)
        return list(islice(fresh, count))

    def _candidate(self, point: int) -> Candidate:
        payload = self._kernel.to_bytes()
        origin = "search" if point else _DEFAULT_ORIGIN
        configuration = json.dumps({"point": point})
        return Candidate(key=f"point-{point}", configuration=configuration, payload=payload, origin=origin)


class MockTuner:
    """Searches mock kernels. Stages take the time that the kernel says; points fail as it says.

    A point that hangs really hangs and one that is lost really kills its worker, so
    watchdogs and engines can be tried without a compiler.
    """

    name = "mock"

    def tasks(self, model: str) -> Sequence[Task]:
        return mock_tasks(model)

    def open(self, task: Task, options: SearchOptions, known: Sequence[Trial]) -> MockSearch:
        return MockSearch(MockKernel.from_bytes(task.payload), options, known)

    def build(self, task: Task, candidate: Candidate, rules: MeasuringRules) -> Artifact | Failure:
        kernel, point = MockKernel.from_bytes(candidate.payload or task.payload), point_of(candidate)
        took_s = _spend(kernel, StageKind.BUILD)
        kind = kernel.failure(point)
        if kind is FailureKind.BUILD_TIMEOUT:
            time.sleep(_FOR_EVER_S)
        if kind in _BUILD_FAILURES:
            return Failure(kind=kind, message=f"point {point} can't be built, as asked for")
        payload = json.dumps({"kernel": kernel.to_bytes().decode(), "point": point}).encode()
        return Artifact(payload=payload, features={"point": float(point)}, build_s=took_s)

    def profile(
        self, task: Task, artifact: Artifact, rules: MeasuringRules, best_s: float | None
    ) -> Measurement | Failure:
        built = json.loads(artifact.payload)
        kernel, point = MockKernel.from_bytes(built["kernel"].encode()), int(built["point"])
        took_s = _spend(kernel, StageKind.PROFILE)
        kind = kernel.failure(point)
        if kind is FailureKind.RUN_TIMEOUT:
            time.sleep(_FOR_EVER_S)
        if kind is FailureKind.WORKER_LOST:
            os.kill(os.getpid(), signal.SIGKILL)
        if kind is not None:
            return Failure(kind=kind, message=f"point {point} can't be run, as asked for")
        return Measurement(seconds=(kernel.time_s(point),) * rules.repeats, profile_s=took_s)


def point_of(candidate: Candidate) -> int:
    """The point of a landscape that a candidate stands for."""
    return int(json.loads(candidate.configuration)["point"])


def _spend(kernel: MockKernel, stage: StageKind) -> float:
    """Take the time that the stage takes."""
    seconds = kernel.stage_s.get(stage.value, 0.0)
    if seconds:
        time.sleep(seconds)
    return seconds
