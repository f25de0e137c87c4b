"""Cores, clocks, limits and memory, as the kernel describes them below `/proc` and `/sys`."""

import os
from collections.abc import Sequence
from pathlib import Path

from tuneloom.app.doctor.findings import Finding, good, note, warning

ROOT = Path("/")
_GIB = 1 << 30
_LEAST_MEMORY = 2 * _GIB
_MOST_STOLEN = 0.01
_BUSY = 0.5


def cores(root: Path = ROOT) -> Sequence[Finding]:
    """The cores this process may use, and which of them are threads of one core."""
    usable = sorted(os.sched_getaffinity(0))
    found = good("cores", f"{len(usable)} usable")
    if len(usable) == 1:
        found = warning("cores", "1 usable", "measurements share it with everything else; two are needed")
    siblings = {
        _text(root / f"sys/devices/system/cpu/cpu{core}/topology/thread_siblings_list") for core in usable
    }
    paired = sorted(names for names in siblings if any(mark in names for mark in ",-"))
    if paired:
        remedy = (
            "a neighbour slows a measured thread down: switch SMT off, or keep siblings idle with taskset"
        )
        found += note("threads of one core", "; ".join(paired), remedy)
    return found


def clocks(root: Path = ROOT) -> Sequence[Finding]:
    """Whether clocks follow the load, which makes first measurements slower than later ones."""
    paths = sorted((root / "sys/devices/system/cpu").glob("cpu*/cpufreq/scaling_governor"))
    governors = sorted({_text(path) for path in paths})
    if not governors:
        return note("clock governor", "not visible here, as in most virtual machines")
    if governors == ["performance"]:
        return good("clock governor", "performance")
    return warning("clock governor", ", ".join(governors), "cpupower frequency-set -g performance")


def limits(root: Path = ROOT) -> Sequence[Finding]:
    """What a container's control group allows."""
    quota, _, period = _text(root / "sys/fs/cgroup/cpu.max").partition(" ")
    if not quota or quota == "max":
        return good("CPU limit", "none")
    allowed, usable = int(quota) / int(period), len(os.sched_getaffinity(0))
    if allowed >= usable:
        return good("CPU limit", f"{allowed:g} cores")
    remedy = "a process that exceeds the limit is stopped in the middle of a measurement: pin cores instead"
    return warning("CPU limit", f"{allowed:g} of {usable} cores", remedy)


def memory(root: Path = ROOT) -> Sequence[Finding]:
    """What is free, within the limit of the container."""
    lines = dict(line.split(":", 1) for line in _text(root / "proc/meminfo").splitlines() if ":" in line)
    free = int(lines["MemAvailable"].split()[0]) * 1024
    most = _text(root / "sys/fs/cgroup/memory.max")
    if most.isdigit():
        used = _text(root / "sys/fs/cgroup/memory.current")
        free = min(free, int(most) - (int(used) if used.isdigit() else 0))
    shown = f"{free / _GIB:.1f} GiB free"
    if free < _LEAST_MEMORY:
        return warning("memory", shown, "builds need about 0.5 GiB each; free some, or use fewer cores")
    return good("memory", shown)


def load() -> Sequence[Finding]:
    """How much other programs are computing."""
    now, usable = os.getloadavg()[0], len(os.sched_getaffinity(0))
    shown = f"{now:.1f} processes on {usable} cores"
    if now > _BUSY * usable:
        return warning("load", shown, "other programs compute beside the measurements; stop them or wait")
    return good("load", shown)


def ticks(root: Path = ROOT) -> tuple[int, int]:
    """Time that all processors spent so far, and how much of it a hypervisor took away."""
    numbers = [int(word) for word in _text(root / "proc/stat").splitlines()[0].split()[1:9]]
    return sum(numbers), numbers[7]


def stolen(before: tuple[int, int], after: tuple[int, int]) -> Sequence[Finding]:
    """How much of the time between two readings was taken away."""
    share = (after[1] - before[1]) / max(after[0] - before[0], 1)
    if share > _MOST_STOLEN:
        remedy = "the hypervisor gives cores to others: use a dedicated instance, or repeat at a quieter time"
        return warning("stolen time", f"{share:.1%}", remedy)
    return good("stolen time", f"{share:.1%}")


def _text(path: Path) -> str:
    try:
        return path.read_text().strip()
    except OSError:
        return ""
