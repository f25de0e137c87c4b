"""Kinds of devices: ours fulfil the contract, and a stranger's package brings one of its own."""

import logging
import platform
from collections.abc import Iterator
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path

import pytest

from support.boards.local import BoardProcess
from tuneloom.app.devices import cpu, cuda, describing, rpc
from tuneloom.app.devices.base import DeviceEntry, DeviceKind
from tuneloom.app.devices.describing import (
    MachineOrder,
    describe,
    device_kind,
    device_kinds,
    key_for,
    plain_targets,
)
from tuneloom.app.farm.reading import read_farm
from tuneloom.errors import FarmError, JobsFileError
from tuneloom.gpus import InstalledGpu
from tuneloom.testing.contracts.device import DeviceKindContract

ABACUS = """
from tuneloom.app.devices.base import DeviceKind, DeviceState
from tuneloom.engine.machine import Offer
from tuneloom.model import Device

class Abacus(DeviceKind):
    target = "beads"
    fields = ("beads",)
    needed = ("beads",)

    def called(self, entry):
        return f"the abacus with {entry.options['beads']} beads"

    def offer(self, entry, machine):
        beads = str(entry.options["beads"])
        device = Device(name=machine.named(f"{entry.key}-{beads}"), key=entry.key, machine=machine.name)
        own = {"environment": {"BEADS": beads}, "locks": (f"abacus-{beads}",)}
        return Offer(resource=device, target=self.target, **own)

    def look(self, entry):
        few = entry.options["beads"] < 1
        return DeviceState(trouble="it has no beads") if few else DeviceState(facts={"device": "wood"})

KIND = Abacus()
"""
FARM = """engine = "local"
[[devices]]
key = "old"
kind = "abacus"
beads = {}
"""


@pytest.fixture
def stranger(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder that packages are imported from: one brings a kind that works, one a kind that does not."""
    (tmp_path / "strangers_abacus.py").write_text(ABACUS)
    about = tmp_path / "strangers-1.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: strangers\nVersion: 1.0\n")
    (about / "entry_points.txt").write_text(
        "[tuneloom.devices]\nabacus = strangers_abacus:KIND\nbroken = strangers_nothing:KIND\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    describing._loaded.cache_clear()
    return tmp_path


def test_a_device_of_a_strangers_kind_is_listed_with_its_own_fields_and_offered(stranger: Path) -> None:
    (stranger / "farm.toml").write_text(FARM.format(9))
    farm = read_farm(stranger / "farm.toml")
    (entry,) = farm.devices
    assert entry.options == {"beads": 9}
    (_host, abacus) = describe(MachineOrder(devices=farm.devices)).offers
    assert (abacus.resource.name, abacus.environment, abacus.target) == ("old-9", {"BEADS": "9"}, "beads")
    assert key_for("beads") == "abacus" and "beads" in plain_targets()


def test_what_is_wrong_with_a_strangers_device_is_said_with_its_line(stranger: Path) -> None:
    path = stranger / "farm.toml"
    path.write_text(FARM.format(9) + FARM.format(9).partition("\n")[2])
    with pytest.raises(JobsFileError, match="line 6: the abacus with 9 beads is listed twice, see line 2"):
        read_farm(path)
    path.write_text(FARM.format("true"))
    with pytest.raises(JobsFileError, match="line 5: 'beads' must be text or a number, got true"):
        read_farm(path)


def test_a_kind_that_cannot_be_loaded_is_named_and_the_others_can_be_used(
    stranger: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING):
        assert {"abacus", "cpu"} <= device_kinds().keys() and "broken" not in device_kinds()
    assert caplog.messages and all("'broken'" in message for message in caplog.messages)
    with pytest.raises(FarmError, match=r"'broken' .* can't be loaded: No module named 'strangers_nothing'"):
        device_kind("broken")
    with pytest.raises(FarmError, match="no kind of device named 'loom'; known: abacus, broken, cpu"):
        device_kind("loom")


@pytest.mark.parametrize(
    ("target", "key"), [("cpu", "cpu"), ("cuda", "cuda"), ('{"kind": "cuda"}', "cuda"), ("llvm -x", "cpu")]
)
def test_a_target_is_measured_on_the_devices_whose_kind_takes_it(target: str, key: str) -> None:
    assert key_for(target) == key


class TestCores(DeviceKindContract):
    def kind(self) -> DeviceKind:
        return cpu.KIND

    def device(self) -> DeviceEntry:
        return DeviceEntry(key="xeon", kind="cpu")

    def absent(self) -> DeviceEntry:
        return DeviceEntry(key="xeon", kind="cpu", cores=10**6)


class TestGpus(DeviceKindContract):
    @pytest.fixture(autouse=True)
    def two_gpus(self, monkeypatch: pytest.MonkeyPatch) -> None:
        gpus = tuple(InstalledGpu(uuid=uuid, name="NVIDIA H200") for uuid in ("GPU-a", "GPU-b"))
        monkeypatch.setattr(cuda, "visible_gpus", lambda: gpus)
        monkeypatch.setattr(cuda, "users", tuple)

    def kind(self) -> DeviceKind:
        return cuda.KIND

    def device(self) -> DeviceEntry:
        return DeviceEntry(key="h200", kind="cuda", index=1)

    def absent(self) -> DeviceEntry:
        return DeviceEntry(key="h200", kind="cuda", index=2)


class TestBoards(DeviceKindContract):
    @pytest.fixture(autouse=True)
    def board(self) -> Iterator[None]:
        facts = (f"-machine={platform.machine()}", f"-tvm={version('apache-tvm')}")
        with BoardProcess.scripted(*facts) as self.process:
            yield

    def kind(self) -> DeviceKind:
        return rpc.KIND

    def device(self) -> DeviceEntry:
        return DeviceEntry(key="test", kind="rpc", address=self.process.board.address, target="cpu")

    def absent(self) -> DeviceEntry:
        return replace(self.device(), key="other")
