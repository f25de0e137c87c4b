"""What came out of a kernel with knobs."""

import json
from typing import Any

from tuneloom.app.kinds.kernel.job import KernelJob
from tuneloom.app.kinds.kernel.tuning import KernelTuning


def kernel_result(job: KernelJob) -> dict[str, Any]:
    """What came out of a kernel, as plain data."""
    tuning = job.tuning
    if not isinstance(tuning, KernelTuning):
        return {}
    progress = tuning.tasks[0]
    result: dict[str, Any] = {"built_only": tuning.built_only, "presampling_s": job.presampling_s}
    if progress.best:
        best = progress.best[0]
        result["best"] = json.loads(best.trial.candidate.configuration)
        result["best_s"] = best.seconds
        result["kernels"] = {progress.task.key: {"before_s": None, "after_s": best.seconds, "note": ""}}
    return result | ({"validity": job.insight} if job.insight else {})
