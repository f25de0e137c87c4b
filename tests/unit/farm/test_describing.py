"""A machine of a farm offers what the farm file says of it, and notices devices that come and go."""

import os
import threading
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

from tuneloom.app.devices import describing
from tuneloom.app.devices.base import DeviceEntry, DeviceState
from tuneloom.app.devices.describing import Description, MachineOrder, SeenDevice, describe
from tuneloom.app.devices.watching import DeviceWatch, occupied
from tuneloom.engine.api import ResourceDisturbed, ResourceJoined, ResourceLeft, ResourceShared
from tuneloom.engine.calls import Call
from tuneloom.engine.local import LocalEngine
from tuneloom.engine.machine import Fleet, Offer
from tuneloom.gpus import GpuUser, InstalledGpu
from tuneloom.model import Device, Host

FOUR = frozenset(range(4))


@pytest.fixture(autouse=True)
def four_cores(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine on which nobody else measures."""
    monkeypatch.setenv("TUNELOOM_DEVICE_LOCKS", str(tmp_path / "locks"))
    monkeypatch.setattr(os, "sched_getaffinity", lambda _pid: set(FOUR))
    monkeypatch.setattr("tuneloom.app.devices.cuda.visible_gpus", tuple)


def test_a_machine_of_which_nothing_is_said_offers_its_cores_and_its_cpu() -> None:
    host, cpu = describe(MachineOrder(name="a")).offers
    assert host == Offer(resource=Host(name="a/host", slots=3, machine="a"), cores=frozenset({0, 1, 2}))
    assert cpu.resource == Device(name="a/cpu0", key="cpu", lends_to="a/host", machine="a")
    assert cpu.cores == {3}


def test_listed_devices_take_the_place_of_those_that_are_found() -> None:
    two = DeviceEntry(key="xeon", kind="cpu", cores=2)
    host, cpu = describe(MachineOrder(slots=12, devices=(two,))).offers
    assert (host.resource.name, cpu.resource.name) == ("host", "xeon0")
    assert isinstance(host.resource, Host) and host.resource.slots == 12
    assert (host.cores, cpu.cores) == ({0, 1}, {2, 3})
    (only,) = describe(MachineOrder(devices=())).offers
    assert only.cores == FOUR


def test_a_machine_without_slots_has_no_host_and_its_device_lends_nothing() -> None:
    (cpu,) = describe(MachineOrder(name="a", slots=0)).offers
    assert isinstance(cpu.resource, Device) and cpu.resource.lends_to is None


def test_a_device_that_cannot_be_used_is_not_offered_and_says_why() -> None:
    large = DeviceEntry(key="xeon", kind="cpu", cores=9)
    described = describe(MachineOrder(devices=(large,)))
    assert [offer.resource.name for offer in described.offers] == ["host"]
    assert described.troubles == {"xeon0": "it has 4 cores, not 9"}


def test_devices_are_looked_at_side_by_side(monkeypatch: pytest.MonkeyPatch) -> None:
    both = threading.Barrier(2)

    def look(_self: object, _entry: DeviceEntry) -> DeviceState:
        both.wait(timeout=300.0)  # nobody comes through before the other is here
        return DeviceState()

    monkeypatch.setattr("tuneloom.app.devices.cpu.CpuKind.look", look)
    two = (DeviceEntry(key="a", kind="cpu"), DeviceEntry(key="b", kind="cpu"))
    assert [seen.offer.resource.name for seen in describe(MachineOrder(devices=two)).devices] == ["a0", "b0"]


def test_a_gpu_tells_its_process_which_one_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    gpus = tuple(InstalledGpu(uuid=uuid, name="NVIDIA H200") for uuid in ("GPU-a", "GPU-b"))
    monkeypatch.setattr("tuneloom.app.devices.cuda.visible_gpus", lambda: gpus)
    other = GpuUser(uuid="GPU-b", pid=77, program="python3", used_mib=9)
    monkeypatch.setattr("tuneloom.app.devices.cuda.users", lambda: (other,))
    entry = DeviceEntry(key="h200", kind="cuda", node="g", index=1)
    _, gpu = describe(MachineOrder(name="g", devices=(entry,))).offers
    assert (gpu.resource.name, gpu.resident) == ("g/h2001", True)
    assert gpu.environment == {"CUDA_VISIBLE_DEVICES": "GPU-b"}


def test_a_gpu_that_is_not_there_cannot_be_used(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tuneloom.app.devices.cuda.visible_gpus", tuple)
    entry = DeviceEntry(key="h200", kind="cuda", node="g", index=1)
    described = describe(MachineOrder(name="g", devices=(entry,)))
    assert described.troubles == {"g/h2001": "there are 0 GPUs, so none has the index 1"}


def test_a_watch_tells_who_else_uses_a_device_and_when_that_is_over() -> None:
    entry = DeviceEntry(key="h200", kind="cuda")
    offer = Offer(resource=Device(name="h2000", key="h200"))

    def seen(by: str) -> Description:
        device = SeenDevice(entry=entry, offer=offer, state=DeviceState(disturbed_by=by))
        return Description(host=None, devices=(device,))

    watch = DeviceWatch(MachineOrder(), seen(""))
    for by in ("", "python3 (pid 77); 97 % busy", "python3 (pid 77); 12 % busy", ""):
        watch.compare(seen(by))
    told = [ResourceDisturbed(name="h2000", by=by) for by in ("python3 (pid 77); 97 % busy", "")]
    assert watch.changes() == told


def test_the_thread_of_a_watch_ends_with_the_engine_that_has_it() -> None:
    order, before = MachineOrder(), set(threading.enumerate())
    watch = DeviceWatch(order, describe(order))
    engine = LocalEngine(watch=watch)
    engine.poll(0)
    (thread,) = (each for each in set(threading.enumerate()) - before if each.name == "devices")
    engine.close()
    thread.join(300)
    assert not thread.is_alive()


def test_a_watch_tells_who_left_and_why_and_who_came_back() -> None:
    entry = DeviceEntry(key="board", kind="rpc", address="b:1")
    offer = Offer(resource=Device(name="board@b:1", key="board"))

    def seen(trouble: str) -> Description:
        state = DeviceState(trouble=trouble)
        return Description(host=None, devices=(SeenDevice(entry=entry, offer=offer, state=state),))

    watch = DeviceWatch(MachineOrder(), seen(""))
    watch.compare(seen("no answer within 5 s"))
    watch.compare(seen("no answer within 5 s"))
    watch.compare(seen(""))
    left = ResourceLeft(name="board@b:1", reason="no answer within 5 s")
    assert watch.look() == [left, ResourceJoined(offer=offer)]
    assert watch.look() == []
    watch.close()


def test_a_device_that_a_call_has_lost_joins_when_a_later_look_sees_it() -> None:
    entry = DeviceEntry(key="board", kind="rpc", address="b:1")
    offer = Offer(resource=Device(name="board@b:1", key="board"))
    well = Description(host=None, devices=(SeenDevice(entry=entry, offer=offer, state=DeviceState()),))
    watch = DeviceWatch(MachineOrder(), well)
    watch.lost("board@b:1")
    watch.compare(well)  # a look that was under way when the call lost it
    assert watch.changes() == []
    watch.forget_lost()
    watch.compare(well)
    assert watch.changes() == [ResourceJoined(offer=offer)]


def test_a_fleet_sums_slots_and_knows_the_cores_behind_a_key() -> None:
    offers = (*describe(MachineOrder(name="a")).offers, *describe(MachineOrder(name="b")).offers)
    fleet = Fleet(offers=offers)
    assert (fleet.slots, fleet.device_keys) == (6, ["cpu"])
    assert (fleet.cores_of("cpu"), fleet.cores_of("h200")) == (1, 0)


def test_with_whom_a_device_is_shared_is_told_when_something_is_first_measured_there() -> None:
    (first, one), (second, other) = (
        occupied(MachineOrder(device_cores=4)),
        occupied(MachineOrder(device_cores=4)),
    )
    try:
        assert one.changes() == other.changes() == [], "nobody listens while models are checked"
        build = Call(function="f", cores=FOUR)
        other.fitted(build)
        assert other.changes() == []
        other.fitted(replace(build, alone=True))
        (shared,) = other.changes()
        assert isinstance(shared, ResourceShared) and shared.name == "cpu0" and shared.by
        other.fitted(replace(build, alone=True))
        assert other.changes() == []
        one.close()
        other.compare(second)
        assert other.changes() == [ResourceShared(name="cpu0", by="")]
        assert first.offers
    finally:
        one.close()
        other.close()


@pytest.mark.parametrize("fails", ["found", "offer"])
def test_a_kind_of_device_that_fails_costs_its_own_devices_alone(
    fails: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def failing(*_: object) -> None:
        raise AttributeError("no such thing")

    broken = SimpleNamespace(
        found=lambda _cores: [DeviceEntry(key="odd", kind="odd")],
        cores=lambda _entry: 0,
        offer=lambda _entry, _machine: None,
    )
    setattr(broken, fails, failing)
    kinds = {**describing.device_kinds(), "odd": broken}
    monkeypatch.setattr(describing, "device_kinds", lambda: kinds)
    monkeypatch.setattr(describing, "device_kind", kinds.__getitem__)
    with caplog.at_level("WARNING", logger="tuneloom.devices"):
        seen = describing.describe(describing.MachineOrder())
    assert [one.entry.key for one in seen.devices if one.entry.kind == "cpu"] == ["cpu"]
    assert all(one.entry.kind != "odd" for one in seen.devices)
    assert "'odd' are left out: no such thing" in caplog.text
