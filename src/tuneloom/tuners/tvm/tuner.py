"""The plug-in: how kernels of TVM models are searched, built and timed."""

from collections.abc import Sequence

from tuneloom.model import (
    Artifact,
    Candidate,
    Failure,
    Measurement,
    MeasuringRules,
    Search,
    SearchOptions,
    Task,
    Trial,
)
from tuneloom.model.space import TVM, implementer_of


class TvmTuner:
    """MetaSchedule's spaces, searched by our own means."""

    name = "tvm"

    def open(self, task: Task, options: SearchOptions, known: Sequence[Trial]) -> Search:
        from tuneloom.tuners.tvm.search.joint import open_search

        return open_search(task, options, known)

    def build(self, task: Task, candidate: Candidate, rules: MeasuringRules) -> Artifact | Failure:
        from tuneloom.tuners.tvm.measuring.building import build_kernel
        from tuneloom.tuners.tvm.measuring.rebuilding import rebuild_kernel

        if candidate.payload and implementer_of(candidate.configuration) == TVM:
            return build_kernel(candidate.payload)
        return rebuild_kernel(candidate.payload or task.payload, candidate.configuration)

    def profile(
        self, task: Task, artifact: Artifact, rules: MeasuringRules, best_s: float | None
    ) -> Measurement | Failure:
        from tuneloom.tuners.tvm.measuring.profiling import profile_kernel

        return profile_kernel(artifact.payload, rules, best_s)
