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
        self.spent_j, self.hot = 0.0, 0

    def now(self) -> SimpleNamespace:
        throttled = "too hot" if self.hot else ""
        self.hot = max(0, self.hot - 1)
        return SimpleNamespace(energy_j=self.spent_j, throttled=throttled, numbers={})


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


@pytest.mark.parametrize(("seconds", "rounds"), [(1e-3, 7), (0.15, 3), (30.0, 1)])
def test_kernels_that_take_long_meet_in_fewer_rounds(
    monkeypatch: pytest.MonkeyPatch, seconds: float, rounds: int
) -> None:
    monkeypatch.setattr(contests, "loaded", lambda _payload: Kernel(Device(), seconds, 0.5))
    monkeypatch.setattr(contests, "watch_of", lambda _device: None)
    found = contests.contest([BUILT, BUILT], MeasuringRules())
    assert [len(times) for times in found] == [rounds, rounds]


def test_rounds_on_a_throttled_device_are_repeated(monkeypatch: pytest.MonkeyPatch) -> None:
    device = Device()
    device.hot = 1
    kernel = Kernel(device, 1e-3, 0.5)
    monkeypatch.setattr(kernel, "time", lambda number, repeats: (9e-3 if device.hot else 1e-3,) * repeats)
    monkeypatch.setattr(contests, "loaded", lambda _payload: kernel)
    monkeypatch.setattr(contests, "watch_of", lambda _device: device)
    monkeypatch.setattr("tuneloom.tuners.tvm.measuring.profiling._COOLING_S", 0.0)
    assert {time for times in contests.contest([BUILT], MeasuringRules()) for time in times} == {1e-3}
