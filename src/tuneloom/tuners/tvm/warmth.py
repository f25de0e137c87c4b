"""What the parent of all workers does before it forks the first."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager

from tuneloom.backends.finding import all_backends
from tuneloom.compiler.fast_import import load_tvm


@contextmanager
def hidden(package: str) -> Iterator[None]:
    """Make importing a package fail; only for a moment, since SciPy trips over a hidden module."""
    absent = package not in sys.modules
    if absent:
        sys.modules[package] = None  # type: ignore[assignment]
    try:
        yield
    finally:
        if absent:
            del sys.modules[package]


def warm_up() -> None:
    """Import all that stages import and build one small kernel, so that no fork has to begin with that.

    What LLVM and TVM set up for the first kernel of a process takes as long as building one, and
    a process builds few candidates. The small kernel runs in one thread, and starts none.
    TVM imports torch where it finds it, which takes seconds and may touch a GPU, after
    which no fork could use it. So torch is hidden meanwhile; a worker that needs it imports it.
    XGBoost imports scikit-learn for classes that are not used here, which takes a second.
    """
    with hidden("torch"):
        load_tvm()
        for backend in all_backends():
            backend.warm_up()
    with hidden("sklearn"):
        import xgboost  # noqa: F401

    import tuneloom.tuners.stages
    import tuneloom.tuners.tvm.measuring.canary
    import tuneloom.tuners.tvm.measuring.contest
    import tuneloom.tuners.tvm.measuring.rebuilding
    import tuneloom.tuners.tvm.models.checking
    import tuneloom.tuners.tvm.models.opening
    import tuneloom.tuners.tvm.search.search

    tuneloom.tuners.stages.tuner_named("tvm")
    tuneloom.tuners.tvm.measuring.canary.canary_time("cpu")
