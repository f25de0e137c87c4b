"""The simulator's C code, compiled once for each machine and version of the sources."""

import ctypes
import hashlib
import os
import platform
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path

from tuneloom_vta.errors import CompilerError

_SOURCES = Path(__file__).parent
_PARTS = ("decode.c", "transfers.c", "compute.c", "device.c")
_WHOLE = "whole.c"
_FLAGS = ("-O3", "-std=gnu11", "-fPIC")
_NATIVE = (*(("-mcpu=native",) if platform.machine() == "aarch64" else ()), "-march=native", "")
"""On x86 compilers accept -mcpu as well, but it only tunes."""


def compiler() -> str | None:
    """The system's C compiler; None where there is none."""
    return shutil.which(os.environ.get("CC", "cc"))


@lru_cache(maxsize=1)
def library() -> ctypes.CDLL:
    """The compiled simulator; raises CompilerError where it can't be compiled."""
    path = _folder() / f"simulator-{_digest()}.so"
    if not path.exists():
        _compile(path, _PARTS, (*_FLAGS, "-shared"))
    return ctypes.CDLL(str(path))


def simulator_object() -> Path:
    """The simulator as an object for the libraries of models; raises CompilerError."""
    path = _folder() / f"simulator-{_digest()}.o"
    if not path.exists():
        _compile(path, (_WHOLE,), (*_FLAGS, "-c"))
    return path


def _folder() -> Path:
    root = os.environ.get("TUNELOOM_VTA_CACHE") or Path.home() / ".cache" / "tuneloom-vta"
    folder = Path(root)
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def _digest() -> str:
    seen = hashlib.sha256(f"{platform.machine()} {platform.processor()}".encode())
    for path in sorted(_SOURCES.glob("*.[ch]")):
        seen.update(path.read_bytes())
    return seen.hexdigest()[:16]


def _compile(path: Path, names: Sequence[str], flags: Sequence[str]) -> None:
    """Compile next to the target and move, so that several processes may do it at once."""
    program = compiler()
    if program is None:
        raise CompilerError("the VTA simulator needs a C compiler; install one, or set CC")
    sources = [str(_SOURCES / name) for name in names]
    with tempfile.TemporaryDirectory(dir=path.parent) as folder:
        made = Path(folder) / "simulator.so"
        for native in _NATIVE:
            chosen = [*flags, native] if native else list(flags)
            done = subprocess.run(
                [program, *chosen, "-o", str(made), *sources], capture_output=True, text=True, check=False
            )
            if done.returncode == 0:
                made.replace(path)
                return
    raise CompilerError(f"{program} could not compile the VTA simulator: {done.stderr.strip()[-300:]}")
