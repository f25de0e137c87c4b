"""What a GPU target needs to know of its GPU, asked of the driver's own tool.

Build workers must not touch a GPU, so nothing here does.
"""

import os
import shutil
import subprocess
from typing import Any

from tuneloom.errors import TargetError

_QUERY = ("--query-gpu=compute_cap", "--format=csv,noheader")
_EXAMPLE = '{"kind": "cuda", "arch": "sm_90"}'


def cuda_config(config: dict[str, Any]) -> dict[str, Any]:
    """A CUDA target with architecture and limits filled in.

    Raises TargetError when there is no GPU to ask and no architecture given.
    """
    arch = str(config["arch"]) if "arch" in config else f"sm_{_compute_capability().replace('.', '')}"
    limits = {
        "arch": arch,
        "max_threads_per_block": 1024,
        "max_shared_memory_per_block": 49152,
        "thread_warp_size": 32,
        "registers_per_block": 65536,
    }
    return {**limits, **config}


def _compute_capability() -> str:
    tool = shutil.which("nvidia-smi")
    if tool is None:
        raise TargetError(f"no NVIDIA driver found here; name the GPU's architecture: --target '{_EXAMPLE}'")
    visible = os.environ.get("CUDA_VISIBLE_DEVICES", "").partition(",")[0].strip()
    which = ("-i", visible) if visible else ()
    asked = subprocess.run([tool, *which, *_QUERY], capture_output=True, text=True, check=False)
    lines = asked.stdout.split()
    if asked.returncode or not lines:
        raise TargetError(f"nvidia-smi lists no GPU; name its architecture: --target '{_EXAMPLE}'")
    return lines[0]
