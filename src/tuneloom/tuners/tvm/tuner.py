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


class TvmTuner:
    """MetaSchedule's spaces, searched by our own means."""

    name = "tvm"

    def open(self, task: Task, options: SearchOptions, known: Sequence[Trial]) -> Search:
        from tuneloom.tuners.tvm.search.search import TvmSearch

        return TvmSearch(task, options, known)

    def build(self, task: Task, candidate: Candidate, rules: MeasuringRules) -> Artifact | Failure:
        from tuneloom.tuners.tvm.measuring.building import build_kernel
        from tuneloom.tuners.tvm.measuring.rebuilding import rebuild_kernel

        if not candidate.payload:
            return rebuild_kernel(task, candidate.configuration)
        return build_kernel(candidate.payload)

    def profile(
        self, task: Task, artifact: Artifact, rules: MeasuringRules, best_s: float | None
    ) -> Measurement | Failure:
        from tuneloom.tuners.tvm.measuring.profiling import profile_kernel

        return profile_kernel(artifact.payload, rules, best_s)
