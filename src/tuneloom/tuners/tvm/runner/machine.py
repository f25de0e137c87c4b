"""Whether this machine can run a bundle: its CPU, and libraries that code in the bundle calls."""

import ctypes
import platform
from collections.abc import Sequence
from importlib import metadata
from typing import Any

from tuneloom.tuners.tvm.runner.flags import cpu_flags
from tuneloom.tuners.tvm.runner.refused import Refused


def check_machine(target: dict[str, Any]) -> None:
    """Refuse code for another CPU: it would die of an illegal instruction."""
    if target["machine"] != platform.machine():
        raise Refused(
            f"built for {target['machine']}, this machine is {platform.machine()}; tune it again here"
        )
    present = set(cpu_flags())
    lacking = [name for name, flag in target["cpu_flags"].items() if present and flag not in present]
    if lacking:
        raise Refused(
            f"built for CPU {target['mcpu']!r}, this one lacks {', '.join(lacking)}; tune it again here"
        )


def load_libraries(requires: Sequence[dict[str, Any]]) -> None:
    """Load the libraries that code in the bundle calls, so that it finds them; refuse if one is missing.

    Of several versions of a library the first that can be loaded is enough.
    """
    for one in requires:
        if not any(shared_library(name, package) for name, package in one["libraries"].items()):
            raise Refused(
                f"code of {one['implementer']} in this bundle needs {' or '.join(one['libraries'])}; "
                f"install the package {' or '.join(one['libraries'].values())}"
            )


def shared_library(name: str, package: str) -> Any:
    """A shared library, which stays in this process: the linker's, or that of a package; None without any."""
    for path in (name, *files_of(package, name)):
        try:
            return ctypes.CDLL(path)
        except OSError:
            continue
    return None


def files_of(package: str, name: str) -> list[str]:
    """Where an installed package of Python has files of this name: the linker does not look there."""
    try:
        return [str(file.locate()) for file in metadata.files(package) or () if file.name == name]
    except metadata.PackageNotFoundError:
        return []
