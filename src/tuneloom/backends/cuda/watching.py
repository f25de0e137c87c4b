"""A GPU watched through NVML, which stays open: asking it anew costs as much as a measurement."""

import os
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from tuneloom.backends.watching import Conditions
from tuneloom.errors import TargetError
from tuneloom.gpus import GpuState, InstalledGpu, kept_open, state_of, visible_gpus

_REASONS = {0x8: "slowed down by its hardware", 0x20: "too hot", 0x40: "too hot", 0x80: "short of power"}
"""The driver's reasons that go away, as bits. A power limit is not among them: it holds for a whole load."""


class GpuWatch:
    """What the driver says of one GPU."""

    def __init__(self, nvml: Any, handle: Any, own: Callable[[], int] = os.getpid) -> None:
        self._nvml, self._handle, self._own = nvml, handle, own

    def now(self) -> Conditions:
        """Never raises: a driver that does not answer has told nothing."""
        try:
            state = state_of(self._nvml, self._handle)
        except self._nvml.NVMLError:
            return Conditions()
        numbers: dict[str, float | None] = {
            "core_mhz": state.core_mhz,
            "memory_mhz": state.memory_mhz,
            "temperature_c": state.temperature_c,
            "power_w": state.power_w,
            "slowed_by": state.slowed_by,
            "other_processes": sum(user.pid != self._own() for user in state.users),
        }
        return Conditions(
            numbers={name: value for name, value in numbers.items() if value is not None},
            throttled=throttled(state),
            energy_j=state.energy_j,
        )


def throttled(state: GpuState) -> str:
    """Why a GPU is slower than it should be, in words; empty if it is not."""
    words = [word for bit, word in _REASONS.items() if (state.slowed_by or 0) & bit]
    return ", ".join(dict.fromkeys(words))


def watch_first() -> GpuWatch | None:
    """A watch of the GPU that this process sees first; None without one, or without NVML."""
    gpus: tuple[InstalledGpu, ...] = ()
    with suppress(TargetError):
        gpus = visible_gpus()
    opened = kept_open(gpus[0].uuid) if gpus else None
    return None if opened is None else GpuWatch(*opened)
