"""Linking code for other machines: with the linker that the target's triple names, and nothing else."""

import importlib
import platform
import shutil
import subprocess
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tuneloom.errors import TargetError

_OTHER_NAMES = {"arm64": "aarch64", "amd64": "x86_64", "armv7l": "arm", "armv7": "arm", "armv8l": "arm"}
NATIVE = "ld"
"""The linker of this machine."""

Link = Callable[..., None]


def triple_of(config: Mapping[str, Any]) -> str:
    """The triple that a target gives, its own or that of its host code; empty where it gives none."""
    host = config.get("host")
    own = config.get("mtriple", "")
    return str(own or (host.get("mtriple", "") if isinstance(host, Mapping) else ""))


def machine_of(config: Mapping[str, Any]) -> str:
    """The machine that code for a target runs on, as `uname -m` calls it."""
    triple = triple_of(config)
    return _machine(triple) if triple else platform.machine()


def linker_of(config: Mapping[str, Any]) -> str:
    """The linker for a target: this machine's own, or the one that its triple names."""
    triple = triple_of(config)
    if not triple or _machine(triple) == _machine(platform.machine()):
        return NATIVE
    return f"{_prefix(triple)}-{NATIVE}"


def require_linker(config: Mapping[str, Any]) -> None:
    """Raise TargetError, with the package to install, if the linker for a target is missing."""
    triple = triple_of(config)
    if triple and "linux" not in triple:
        raise TargetError(f"code for {triple} can't be linked; only triples of Linux machines are supported")
    linker = linker_of(config)
    if shutil.which(linker) is None:
        package = "binutils" if linker == NATIVE else f"binutils-{_prefix(triple).replace('_', '-')}"
        raise TargetError(
            f"the linker {linker} for {triple or platform.machine()} is not installed; apt install {package}"
        )


def compiler_here() -> bool:
    """Whether TVM finds a compiler of C on this machine."""
    cc: Any = importlib.import_module("tvm.support.cc")
    return cc.get_cc() is not None


def link_with(linker: str) -> Link:
    """A function that links objects with the linker alone: a compiler driver would take most of the time."""

    def link(output: str, objects: Sequence[str], options: Any = None, **_: Any) -> None:
        command = [linker, "-shared", "-o", output, *objects]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            raise RuntimeError(f"linking failed: {done.stderr.strip()}")

    return link


def _machine(triple: str) -> str:
    name = triple.partition("-")[0]
    return _OTHER_NAMES.get(name, name)


def _prefix(triple: str) -> str:
    """The triple as Debian's tools are called after it: without a vendor."""
    *_, system = triple.split("-")
    return f"{_machine(triple)}-linux-{system if system.startswith('gnu') else 'gnu'}"
