"""Contests for energy: kernels are timed in turn, then each runs for a while beside the device's counter."""

from types import SimpleNamespace

import pytest

from tuneloom.model import MeasuringRules
from tuneloom.tuners.tvm.measuring import contest as contests
from tuneloom.tuners.tvm.measuring.artifacts import BuiltKernel

BUILT = BuiltKernel(device="cuda", arguments=(), library=b"").to_bytes()


class Device:
    """A counter of joules that grows with every run."""

    def __init__(self) -> None:
        self.spent_j = 0.0

    def now(self) -> SimpleNamespace:
        return SimpleNamespace(energy_j=self.spent_j)


class Kernel:
    steady = True

    def __init__(self, device: Device, seconds: float, joules: float) -> None:
        self.device, self.seconds, self.joules = device, seconds, joules

    def time(self, number: int, repeats: int) -> tuple[float, ...]:
        self.device.spent_j += number * repeats * self.joules
        return (self.seconds,) * repeats


@pytest.mark.parametrize("counts", [True, False])
def test_the_joules_of_a_run_are_told_beside_its_seconds(
    monkeypatch: pytest.MonkeyPatch, counts: bool
) -> None:
    device = Device()
    kernels = iter([Kernel(device, 1e-3, 0.5), Kernel(device, 2e-3, 0.25)])
    monkeypatch.setattr(contests, "loaded", lambda _payload: next(kernels))
    monkeypatch.setattr(contests, "watch_of", lambda _device: device if counts else None)
    monkeypatch.setattr(contests, "_ENERGY_S", 0.01)
    seconds, joules = contests.contest_of_energy([BUILT, BUILT], MeasuringRules())
    assert [times[0] for times in seconds] == [1e-3, 2e-3]
    assert joules == ([pytest.approx(0.5), pytest.approx(0.25)] if counts else [None, None])
