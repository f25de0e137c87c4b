"""What a CPU can do."""

import platform
from pathlib import Path


def cpu_flags() -> list[str]:
    """What the kernel says this CPU can do; nothing where it does not say, as under an emulator."""
    row = "Features" if platform.machine().startswith(("aarch64", "arm")) else "flags"
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return []
    rows = (line.partition(":") for line in lines)
    return next((value.split() for key, _, value in rows if key.strip() == row), [])
