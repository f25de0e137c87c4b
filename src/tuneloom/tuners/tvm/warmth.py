"""What the parent of all workers does before it forks the first."""

import sys

from tuneloom.tuners.tvm.fast_import import load_tvm


def warm_up() -> None:
    """Import all that stages import, so that no fork has to.

    TVM imports torch where it finds it, which takes seconds and may touch a GPU, after
    which no fork could use it. So torch is hidden here; a worker that needs it looks again.
    """
    sys.modules.setdefault("torch", None)  # type: ignore[arg-type]
    load_tvm()
    import xgboost  # noqa: F401

    import tuneloom.tuners.stages
    import tuneloom.tuners.tvm.contest
    import tuneloom.tuners.tvm.model_stages
    import tuneloom.tuners.tvm.rebuilding
    import tuneloom.tuners.tvm.search

    tuneloom.tuners.stages.tuner_named("tvm")
