"""Which architectures NVIDIA's assembler knows: the one that Triton brings."""

import re
import subprocess
from functools import cache
from importlib.util import find_spec
from pathlib import Path

from tuneloom.backends.cuda.gpu import KNOWN
from tuneloom.errors import TargetError

_FORM = re.compile(r"sm_(\d+)[af]?")


def require_architecture(arch: str) -> None:
    """Raise TargetError for what is no architecture, or one that nobody here can make code for."""
    form = _FORM.fullmatch(arch)
    if form is None:
        raise TargetError(f"{arch!r} is not an architecture of NVIDIA GPUs; write it like sm_90")
    if int(form[1]) in KNOWN:
        return
    known = assembled()
    if known and arch not in known:
        told = ", ".join(sorted(known, key=lambda name: (int(_digits(name)), name)))
        raise TargetError(f"the assembler does not know {arch}; it knows {told}")


@cache
def assembled() -> frozenset[str]:
    """What the assembler says it knows; nothing where it is not installed."""
    found = find_spec("triton")
    folders = [] if found is None else [Path(place) for place in found.submodule_search_locations or ()]
    names: set[str] = set()
    for program in (path for folder in folders for path in folder.glob("backends/nvidia/bin/ptxas*")):
        try:
            told = subprocess.run([str(program), "--help"], capture_output=True, text=True, check=False)
        except OSError:  # for another machine
            continue
        names |= set(re.findall(r"'(sm_\d+[af]?)'", told.stdout))
    return frozenset(names)


def _digits(name: str) -> str:
    return "".join(filter(str.isdigit, name))
