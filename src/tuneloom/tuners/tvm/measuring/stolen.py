"""Time that a hypervisor took away from this process's cores to give it to other machines."""

import os
from pathlib import Path

_STAT = Path("/proc/stat")
_STOLEN = 8
"""The field of a core's line that counts such time."""


def stolen_ticks(stat: str | None = None) -> int:
    """How many ticks all cores that this process may use have lost since the machine started.

    Where the system does not say, none.
    """
    lines = (stat if stat is not None else _read()).splitlines()
    ours = {f"cpu{core}" for core in os.sched_getaffinity(0)}
    fields = [line.split() for line in lines]
    return sum(int(each[_STOLEN]) for each in fields if len(each) > _STOLEN and each[0] in ours)


def _read() -> str:
    try:
        return _STAT.read_text()
    except OSError:
        return ""
