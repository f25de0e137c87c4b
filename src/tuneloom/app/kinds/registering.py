"""What installed packages registered, found without importing any of it."""

import sys
from functools import cache
from importlib.metadata import EntryPoint, entry_points

KINDS = "tuneloom.kinds"
TUNERS = "tuneloom.tuners"


def registered(group: str) -> tuple[EntryPoint, ...]:
    """What packages registered in a group; looked up once for each path that packages are imported from.

    To look is to read the metadata of every installed package.
    """
    return _registered(group, tuple(sys.path))


@cache
def _registered(group: str, _path: tuple[str, ...]) -> tuple[EntryPoint, ...]:
    return tuple(entry_points(group=group))
