"""What a device did is kept with a measurement; throttled ones are repeated, energy is counted."""

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import pytest

from tuneloom.backends.cuda.watching import GpuWatch, throttled
from tuneloom.backends.watching import Conditions
from tuneloom.gpus import GpuState
from tuneloom.tuners.tvm.measuring.energy import energy_of
from tuneloom.tuners.tvm.measuring.profiling import undisturbed, watch_of

COOL = Conditions(numbers={"core_mhz": 1980.0})
HOT = Conditions(numbers={"core_mhz": 900.0}, throttled="too hot")


class Watch:
    """Tells conditions one after another, the last for ever."""

    def __init__(self, *found: Conditions) -> None:
        self._found = list(found)

    def now(self) -> Conditions:
        return self._found.pop(0) if len(self._found) > 1 else self._found[0]


def measured(watch: Any) -> tuple[int, Any, Sequence[float]]:
    """The number of the measurement that counted, its conditions, and the pauses."""
    made, pauses = iter(range(1, 100)), list[float]()
    number, conditions = undisturbed(lambda: next(made), watch, pauses.append)
    return number, conditions, pauses


def test_conditions_are_kept_with_the_first_measurement_that_is_not_disturbed() -> None:
    assert measured(Watch(COOL)) == (1, {"core_mhz": 1980.0}, [])


def test_a_throttled_measurement_is_repeated_after_a_pause() -> None:
    number, conditions, pauses = measured(Watch(HOT, HOT, COOL))
    assert (number, conditions) == (3, {"core_mhz": 1980.0, "repeated": 2}) and len(pauses) == 2


def test_a_device_that_stays_hot_is_measured_in_the_end_and_that_is_told() -> None:
    number, conditions, pauses = measured(Watch(HOT))
    assert number == len(pauses) + 1 and conditions == {"core_mhz": 900.0, "repeated": len(pauses)}


def test_a_device_that_tells_nothing_is_measured_once() -> None:
    assert measured(None) == (1, {}, [])


@pytest.mark.parametrize("device", ["cpu", "vulkan"])
def test_nobody_watches_a_device_that_can_not_tell(device: str) -> None:
    assert watch_of(device) is None


@pytest.mark.parametrize(
    ("bits", "words"),
    [
        (0, ""),
        (0x4, ""),
        (0x1, ""),
        (0x20, "too hot"),
        (0x60, "too hot"),
        (0x88, "slowed down by its hardware, short of power"),
    ],
)
def test_a_power_limit_is_no_reason_to_measure_again_but_heat_is(bits: int, words: str) -> None:
    assert throttled(GpuState(slowed_by=bits)) == words


class DeafError(Exception):
    """The driver does not answer."""


def test_a_driver_that_does_not_answer_has_told_nothing() -> None:
    def ask(*_: Any) -> Any:
        raise DeafError

    nvml = SimpleNamespace(
        NVMLError=DeafError, NVMLError_NotSupported=KeyError, NVMLError_NoPermission=KeyError,
        nvmlDeviceGetPowerUsage=ask,
    )  # fmt: skip
    assert GpuWatch(nvml, 0).now() == Conditions()


class Meter:
    """A device with a clock of its own and a counter that shows every tenth of a second what was used."""

    def __init__(self, run_s: float, run_j: float) -> None:
        self.run_s, self.run_j = run_s, run_j
        self.now_s = self.used_j = self.shown_j = 0.0
        self.looks = 0

    def clock(self) -> float:
        self.now_s += 1e-6
        return self.now_s

    def run(self) -> None:
        before = int(self.now_s / 0.1)
        self.now_s += self.run_s
        self.used_j += self.run_j
        if int(self.now_s / 0.1) > before:
            self.shown_j = self.used_j

    def now(self) -> Conditions:
        self.looks += 1
        return Conditions(energy_j=self.shown_j)


@pytest.mark.parametrize("run_s", [3e-4, 7e-3, 0.3])
def test_energy_of_a_run_is_what_the_counter_moved_by_its_runs(run_s: float) -> None:
    meter = Meter(run_s, run_j=0.2)
    assert energy_of(meter.run, meter, seconds=0.5, clock=meter.clock) == pytest.approx(0.2, rel=0.05)
    assert meter.now_s < 1.3, "it is not measured for longer than it takes to see two moves"


def test_a_counter_is_not_asked_after_every_run() -> None:
    meter = Meter(1e-5, run_j=0.2)
    energy_of(meter.run, meter, seconds=0.5, clock=meter.clock)
    assert meter.looks < 60


@pytest.mark.parametrize("watch", [None, Watch(Conditions()), Watch(Conditions(energy_j=7.0))])
def test_without_a_counter_that_moves_there_is_no_energy(watch: Any) -> None:
    meter = Meter(1e-3, run_j=0.0)
    assert energy_of(meter.run, watch, seconds=2.0, clock=meter.clock) is None
