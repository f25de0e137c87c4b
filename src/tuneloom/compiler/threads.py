"""How many threads TVM's runtime may use: it asks the environment when it first needs some."""

import os

_COUNT, _BIND = "TVM_NUM_THREADS", "TVM_BIND_THREADS"


def use_own_cores() -> None:
    """One thread for each core of this process, unless the environment says otherwise.

    Left alone, the runtime would bind its threads to the first cores of the machine, whatever
    cores this process was given, and take libraries' OMP_NUM_THREADS for its own.
    """
    os.environ.setdefault(_BIND, "0")
    os.environ.setdefault(_COUNT, str(len(os.sched_getaffinity(0))))


def use_cores(count: int) -> None:
    """So many threads for a model that was compiled for so many cores."""
    if count > 1:
        os.environ.setdefault(_BIND, "0")
        os.environ[_COUNT] = str(count)
