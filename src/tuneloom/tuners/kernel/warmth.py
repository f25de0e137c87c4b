"""What the parent of all workers does before it forks the first, where nothing but kernels is tuned."""

import os
from contextlib import suppress
from pathlib import Path

LOADED = "TUNELOOM_KERNELS"
"""The variable that names files of Python functions, to be loaded once instead of in every worker."""


def warm_up() -> None:
    """Import all that the stages of kernel jobs import; no compiler is among it.

    A user's functions may come from modules that take long to import; every fork then
    has them. A file that can't be loaded is left to the stage that opens it, which says why.
    """
    import tuneloom.tuners.kernel.searching
    import tuneloom.tuners.stages
    from tuneloom.tuners.kernel.opening import opened

    tuneloom.tuners.stages.tuner_named("kernel")
    for path in filter(None, os.environ.get(LOADED, "").split(os.pathsep)):
        with suppress(Exception):
            opened(Path(path))
