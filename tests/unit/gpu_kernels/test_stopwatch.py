"""Short kernels are timed in graphs, long ones launch by launch, and the driver's words reach the trial."""

from collections.abc import Iterator
from typing import Any

import pytest

from tuneloom.backends.cuda import stopwatch
from tuneloom.backends.cuda.stopwatch import LAUNCHES, SHORT_S, Stopwatch


class InventedDriver:
    """A GPU on which a call takes a fixed time, and nothing else any."""

    def __init__(self, run_s: float) -> None:
        self.run_s, self.now_s = run_s, 0.0
        self.recording, self.recorded = False, 0
        self.replays, self.launches, self.fails = 0, 0, ""
        self._marks: list[float] = []

    def run(self) -> None:
        if self.recording:
            self.recorded += 1
        else:
            self.launches += 1
            self.now_s += self.run_s

    def __getattr__(self, name: str) -> Any:
        def call(*arguments: Any) -> int:
            if name == self.fails:
                return 719
            if name == "cuStreamBeginCapture_v2":
                self.recording = True
            elif name == "cuStreamEndCapture":
                self.recording = False
            elif name == "cuGraphLaunch":
                self.replays += 1
                self.now_s += self.recorded * self.run_s
            elif name == "cuEventRecord":
                self._marks = [*self._marks[-1:], self.now_s]
            elif name == "cuEventElapsedTime":
                arguments[0]._obj.value = (self._marks[1] - self._marks[0]) * 1e3
            elif name == "cuGetErrorString":
                arguments[1]._obj.value = b"unspecified launch failure"
            return 0

        return call


@pytest.fixture
def driver(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[InventedDriver]:
    invented = InventedDriver(request.param)
    monkeypatch.setattr(stopwatch, "_driver", lambda: invented)
    yield invented


def device() -> Any:
    import tvm_ffi

    return tvm_ffi.device("cpu", 0)  # only names the stream


@pytest.mark.parametrize("driver", [SHORT_S / 20], indirect=True)
def test_a_short_kernel_is_launched_by_replaying_a_graph(driver: InventedDriver) -> None:
    times = Stopwatch(driver.run, device())(number=100, repeats=3)
    assert times == pytest.approx([SHORT_S / 20] * 3)
    assert (driver.recorded, driver.replays) == (LAUNCHES, 1 + 3 * 100 // LAUNCHES)


@pytest.mark.parametrize("driver", [SHORT_S * 4], indirect=True)
def test_a_long_kernel_is_launched_as_often_as_asked(driver: InventedDriver) -> None:
    times = Stopwatch(driver.run, device())(number=7, repeats=2)
    assert times == pytest.approx([SHORT_S * 4] * 2)
    assert (driver.recorded, driver.replays, driver.launches) == (0, 0, 2 + 2 * 7)


@pytest.mark.parametrize("driver", [SHORT_S / 20], indirect=True)
def test_a_graph_is_recorded_once_however_often_a_kernel_is_timed(driver: InventedDriver) -> None:
    watch = Stopwatch(driver.run, device())
    watch(number=1, repeats=1)
    watch(number=40, repeats=1)
    assert (driver.recorded, driver.launches) == (LAUNCHES, 2)


@pytest.mark.parametrize("driver", [SHORT_S / 20], indirect=True)
def test_what_the_driver_says_of_a_failed_launch_is_told(driver: InventedDriver) -> None:
    driver.fails = "cuEventSynchronize"
    with pytest.raises(RuntimeError, match="cuEventSynchronize: unspecified launch failure"):
        Stopwatch(driver.run, device())(number=1, repeats=1)


@pytest.mark.parametrize("driver", [SHORT_S / 20], indirect=True)
def test_what_cannot_be_recorded_is_launched_one_by_one(driver: InventedDriver) -> None:
    driver.fails = "cuStreamEndCapture"
    watch = Stopwatch(driver.run, device())
    watch(number=1, repeats=1)
    assert driver.replays == 0
