"""CUDA's compiler, which TVM asks for kernels that no template knows, and the headers that it reads."""

import os
import shutil
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from tuneloom.errors import TargetError

_USUAL = Path("/usr/local/cuda")
_PATH, _OPTIONS = "CUDA_PATH", "TVM_CUDA_NVRTC_EXTRA_OPTS"


@cache
def point_to_headers() -> None:
    """Show TVM the headers of a toolkit, or of NVIDIA's packages, unless it was told already."""
    root = next(iter(_roots()), None)
    if root is None or _PATH in os.environ:
        return
    os.environ[_PATH] = str(root)
    if (root / "include" / "cccl").is_dir():
        os.environ[_OPTIONS] = f"{os.environ.get(_OPTIONS, '')} -I{root / 'include' / 'cccl'}".strip()


def require_compiler(module: Any) -> Any:
    """The module as it is; raises TargetError if it has kernels to compile and nothing here can do it."""
    if _bindings_are_there() and (_PATH in os.environ or _roots()):
        return module
    for name, function in ((one.name_hint, each) for one, each in module.functions.items()):
        if "thread_binding" in function.script():
            raise TargetError(
                f"no template knows the kernel {name}, and CUDA's compiler is not installed; "
                "pip install 'tuneloom[cuda]'"
            )
    return module


def _bindings_are_there() -> bool:
    return find_spec("cuda") is not None and find_spec("cuda.bindings") is not None


def _roots() -> list[Path]:
    """Folders with headers of CUDA: a toolkit's first, then those of packages, the newest first."""
    program = shutil.which("nvcc")
    toolkits = [Path(program).resolve().parents[1], Path(program).parents[1]] if program else []
    spec = find_spec("nvidia")
    places = [Path(place) for place in (spec.submodule_search_locations or ())] if spec else []
    packages = [one for place in places for one in sorted(place.glob("cu[0-9]*"), reverse=True)]
    return [one for one in (*toolkits, _USUAL, *packages) if _has_headers(one)]


def _has_headers(root: Path) -> bool:
    folders = (root / "include", *root.glob("targets/*/include"))
    return any((folder / "cuda_runtime.h").is_file() for folder in folders)
