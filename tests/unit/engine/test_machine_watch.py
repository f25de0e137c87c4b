"""Devices that come and go are noticed without asking the driver all the time."""

from tuneloom.engine.machine import Machine
from tuneloom.engine.reports import ResourceJoined, ResourceLeft
from tuneloom.engine.watch import MachineWatch
from tuneloom.model import Device, Host


def machine(gpus: int) -> Machine:
    devices = tuple(Device(name=f"cuda{number}", key="cuda") for number in range(gpus))
    return Machine(host=Host(name="host", slots=2), devices=devices, residents=frozenset({"cuda0"}))


class Bench:
    """A machine whose GPUs can be plugged; `asked` counts how often its driver was asked."""

    def __init__(self) -> None:
        self.gpus = 0
        self.signs: tuple[object, ...] = ()
        self.asked = 0
        self.watch = MachineWatch(machine(0), self.describe, lambda: self.signs)

    def describe(self) -> Machine:
        self.asked += 1
        return machine(self.gpus)


def test_nobody_is_asked_while_nothing_changes() -> None:
    bench = Bench()
    assert [bench.watch.look() for _ in range(100)] == [[]] * 100
    assert bench.asked == 0


def test_a_gpu_that_comes_is_told_once() -> None:
    bench = Bench()
    bench.gpus, bench.signs = 1, ("nvidia0",)
    (joined,) = bench.watch.look()
    assert isinstance(joined, ResourceJoined)
    assert joined.offer.resource.name == "cuda0" and joined.offer.resident
    assert [bench.watch.look() for _ in range(100)] == [[]] * 100
    assert bench.asked <= 6


def test_a_gpu_that_the_driver_lists_late_is_found() -> None:
    bench = Bench()
    bench.signs = ("nvidia0",)
    assert bench.watch.look() == []
    bench.gpus = 1
    assert len(bench.watch.look()) == 1


def test_a_gpu_that_goes_is_told_with_its_name() -> None:
    bench = Bench()
    bench.gpus, bench.signs = 2, ("nvidia0", "nvidia1")
    assert len(bench.watch.look()) == 2
    bench.gpus, bench.signs = 1, ("nvidia0",)
    (left,) = bench.watch.look()
    assert isinstance(left, ResourceLeft) and left.name == "cuda1"
