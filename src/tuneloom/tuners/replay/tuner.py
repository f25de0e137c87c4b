"""A recording behind the tuner protocol: a device on which every trial takes microseconds."""

import json
from collections.abc import Sequence
from functools import lru_cache
from typing import cast

import cloudpickle

from tuneloom.model import (
    Artifact,
    Candidate,
    Failure,
    FailureKind,
    Measurement,
    MeasuringRules,
    SearchOptions,
    Task,
    Trial,
)
from tuneloom.tuners.kernel.tuner import KernelSearch, search_of
from tuneloom.tuners.replay.recording import Recording

_BUILD_FAILURES = (FailureKind.BUILD_ERROR, FailureKind.BUILD_TIMEOUT)


class ReplayTuner:
    """Searches a recorded space; building and profiling answer from the recording."""

    name = "replay"

    def open(self, task: Task, options: SearchOptions, known: Sequence[Trial]) -> KernelSearch:
        """Start a search that knows these trials; raises InputError for an unknown search or start."""
        space = recording_of_task(task).space
        search = search_of(options, space)
        search.update(known)
        return search

    def build(self, task: Task, candidate: Candidate, rules: MeasuringRules) -> Artifact | Failure:
        """The recorded build failure, or an artifact that names the configuration."""
        outcome = outcome_of(recording_of_task(task), candidate.configuration)
        if isinstance(outcome, Failure) and outcome.kind in _BUILD_FAILURES:
            return outcome
        return Artifact(payload=candidate.configuration.encode())

    def profile(
        self, task: Task, artifact: Artifact, rules: MeasuringRules, best_s: float | None
    ) -> Measurement | Failure:
        """The recorded time or failure."""
        return outcome_of(recording_of_task(task), artifact.payload.decode())


def outcome_of(recording: Recording, configuration: str) -> Measurement | Failure:
    """What was recorded of a configuration."""
    entry = recording.at(recording.space.point(json.loads(configuration)))
    if entry.time_ms is None:
        return Failure(kind=entry.failure or FailureKind.RUN_ERROR, message="recorded")
    return Measurement(seconds=(entry.time_ms / 1e3,))


def task_of(recording: Recording) -> Task:
    """The recording as a task that a scheduler can carry around."""
    return Task(
        key=f"replay:{recording.name}",
        name=recording.name,
        kernel_class="replay",
        payload=cloudpickle.dumps(recording),
    )


def recording_of_task(task: Task) -> Recording:
    """The recording that a task carries."""
    return _loaded(task.payload)


@lru_cache(maxsize=8)
def _loaded(payload: bytes) -> Recording:
    return cast(Recording, cloudpickle.loads(payload))
