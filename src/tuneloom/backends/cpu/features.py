"""Whether code compiled for one CPU can run on another.

The check needs neither TVM's compiler nor LLVM, because a bundle is loaded where
only the runtime is installed.
"""

import platform
from collections.abc import Iterable
from pathlib import Path

from tuneloom.errors import BundleError

_CPUINFO = Path("/proc/cpuinfo")
_KERNEL_NAMES = {
    "sse3": "pni",
    "sse4.1": "sse4_1",
    "sse4.2": "sse4_2",
    "lzcnt": "abm",
    "bmi": "bmi1",
    "neon": "asimd",
    "dotprod": "asimddp",
    "bf16": "bf16",
    "avxvnni": "avx_vnni",
    "avx512bf16": "avx512_bf16",
    "avx512fp16": "avx512_fp16",
    "avx512vnni": "avx512_vnni",
    "avx512bitalg": "avx512_bitalg",
    "avx512vbmi": "avx512vbmi",
    "avx512vbmi2": "avx512_vbmi2",
    "avx512vpopcntdq": "avx512_vpopcntdq",
}
_ASKED_FOR = {"amx-tile": "amx_tile", "amx-bf16": "amx_bf16", "amx-int8": "amx_int8"}
"""What no compiler uses by itself."""
_EMITTED = frozenset(
    (
        *_KERNEL_NAMES,
        *("sse", "sse2", "ssse3", "avx", "avx2", "fma", "f16c", "bmi2", "popcnt", "movbe"),
        *("avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl", "avx512ifma", "sve", "sve2"),
    )
)


def cpu_features_needed(features: Iterable[str]) -> tuple[str, ...]:
    """Of a CPU's features, those that a compiler uses in ordinary numeric code."""
    return tuple(sorted(name for name in features if name in _EMITTED))


def kernel_flags(features: Iterable[str]) -> dict[str, str]:
    """Each feature with the name that /proc/cpuinfo has for it; for a bundle's own runner."""
    return {name: _kernel_name(name) for name in features}


def _kernel_name(feature: str) -> str:
    return (_KERNEL_NAMES | _ASKED_FOR).get(feature, feature)


def missing_cpu_features(needed: Iterable[str], cpuinfo: Path = _CPUINFO) -> tuple[str, ...]:
    """The needed features this machine's CPU lacks; nothing when it can't be told."""
    present = _flags(cpuinfo)
    if not present:
        return ()
    return tuple(name for name in needed if _kernel_name(name) not in present)


def present_cpu_features(names: Iterable[str], cpuinfo: Path = _CPUINFO) -> tuple[str, ...]:
    """Which of these features this machine's CPU says it has; none when it can't be told."""
    present = _flags(cpuinfo)
    return tuple(name for name in names if _kernel_name(name) in present)


def check_cpu(needed: Iterable[str], built_for: str, arch: str, cpuinfo: Path = _CPUINFO) -> None:
    """Raise BundleError when code built for another CPU would die here."""
    if arch != platform.machine():
        raise BundleError(f"built for {arch}, this machine is {platform.machine()}; tune it again here")
    missing = missing_cpu_features(needed, cpuinfo)
    if missing:
        lacks = ", ".join(missing)
        raise BundleError(f"built for CPU {built_for!r}, this one lacks {lacks}; tune it again here")


def flags_row(machine: str) -> str:
    """The row of /proc/cpuinfo with the features of a CPU; an emulator shows the row of another machine."""
    return "Features" if machine.startswith(("aarch64", "arm")) else "flags"


def _flags(cpuinfo: Path) -> frozenset[str]:
    try:
        lines = cpuinfo.read_text().splitlines()
    except OSError:
        return frozenset()
    rows = (line.partition(":") for line in lines)
    row = flags_row(platform.machine())
    values = (value for key, _, value in rows if key.strip() == row)
    return frozenset(next(values, "").split())
