"""The doctor sees what disturbs a machine, says what to do, and is never ended by what it looks at."""

import json
import os
import socket
from pathlib import Path

import pytest
from sqlalchemy import create_engine

from tuneloom.app.doctor import machine, noise, software
from tuneloom.app.doctor.findings import Finding, Severity, examined, good
from tuneloom.cli.main import main
from tuneloom.gpus import InstalledGpu
from tuneloom.store.database.migrations import upgrade, version_of


def put(root: Path, path: str, text: str) -> None:
    (root / path).parent.mkdir(parents=True, exist_ok=True)
    (root / path).write_text(text)


def only(findings: object) -> Finding:
    [finding] = findings  # type: ignore[misc]
    return finding


class TestTheMachine:
    def test_threads_of_one_core_are_named(self, tmp_path: Path) -> None:
        for core in os.sched_getaffinity(0):
            put(tmp_path, f"sys/devices/system/cpu/cpu{core}/topology/thread_siblings_list", "0,64\n")
        found = {each.name: each for each in machine.cores(tmp_path)}
        assert found["threads of one core"].value == "0,64"

    def test_cores_without_siblings_are_only_counted(self, tmp_path: Path) -> None:
        for core in os.sched_getaffinity(0):
            put(tmp_path, f"sys/devices/system/cpu/cpu{core}/topology/thread_siblings_list", f"{core}\n")
        assert [each.name for each in machine.cores(tmp_path)] == ["cores"]

    @pytest.mark.parametrize(
        ("governor", "verdict"), [("performance", Severity.GOOD), ("powersave", Severity.WARNING)]
    )
    def test_a_governor_that_follows_the_load_is_warned_of(
        self, tmp_path: Path, governor: str, verdict: Severity
    ) -> None:
        put(tmp_path, "sys/devices/system/cpu/cpu0/cpufreq/scaling_governor", governor)
        assert only(machine.clocks(tmp_path)).verdict is verdict

    def test_a_limit_below_the_number_of_cores_is_warned_of(self, tmp_path: Path) -> None:
        put(tmp_path, "sys/fs/cgroup/cpu.max", "50000 100000")
        found = only(machine.limits(tmp_path))
        assert (found.verdict, found.value.split()[0]) == (Severity.WARNING, "0.5")

    def test_no_limit_is_good(self, tmp_path: Path) -> None:
        put(tmp_path, "sys/fs/cgroup/cpu.max", "max 100000")
        assert only(machine.limits(tmp_path)).verdict is Severity.GOOD

    def test_the_memory_of_a_container_is_what_its_limit_leaves(self, tmp_path: Path) -> None:
        put(tmp_path, "proc/meminfo", "MemTotal: 64000000 kB\nMemAvailable: 32000000 kB\n")
        put(tmp_path, "sys/fs/cgroup/memory.max", str(3 << 30))
        put(tmp_path, "sys/fs/cgroup/memory.current", str(2 << 30))
        found = only(machine.memory(tmp_path))
        assert (found.value, found.verdict) == ("1.0 GiB free", Severity.WARNING)

    def test_time_that_a_hypervisor_took_is_a_share_of_all_time(self) -> None:
        found = only(machine.stolen((1000, 10), (2000, 60)))
        assert (found.value, found.verdict) == ("5.0%", Severity.WARNING)
        assert only(machine.stolen((1000, 10), (2000, 11))).verdict is Severity.GOOD


class TestNoise:
    def test_equal_times_are_quiet(self) -> None:
        assert only(noise.judged([1.0] * 50)).verdict is Severity.GOOD

    def test_a_few_slow_runs_are_usable(self) -> None:
        assert only(noise.judged([1.0] * 40 + [1.05] * 10)).verdict is Severity.NOTE

    def test_many_slow_runs_are_noise_with_a_remedy(self) -> None:
        found = only(noise.judged([1.0] * 40 + [2.0] * 10))
        assert found.verdict is Severity.WARNING
        assert found.remedy

    def test_timing_leaves_the_caller_on_all_its_cores(self) -> None:
        before = os.sched_getaffinity(0)
        assert noise.noise(0.01)
        assert os.sched_getaffinity(0) == before


class TestSoftware:
    def test_a_store_that_does_not_open_is_broken_with_a_remedy(self, tmp_path: Path) -> None:
        (tmp_path / "store.db").write_bytes(b"no database at all" * 100)
        found = only(software.store(str(tmp_path / "store.db")))
        assert (found.verdict, "--store" in found.remedy) == (Severity.BROKEN, True)

    def test_a_store_that_is_not_there_is_not_created(self, tmp_path: Path) -> None:
        place = tmp_path / "later" / "store.db"
        found = only(software.store(str(place)))
        assert (found.verdict, str(place) in found.value) == (Severity.GOOD, True)
        assert list(tmp_path.iterdir()) == []

    def test_an_older_store_is_not_brought_up_to_date(self, tmp_path: Path) -> None:
        place = tmp_path / "store.db"
        with create_engine(f"sqlite:///{place}").begin() as connection:
            upgrade(connection, str(place), to=1)
        assert only(software.store(str(place))).verdict is Severity.GOOD
        with create_engine(f"sqlite:///{place}").begin() as connection:
            assert version_of(connection, str(place)) == 1

    def test_a_folder_that_takes_no_store_is_broken_with_a_remedy(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(software.os, "access", lambda *_: False)
        found = only(software.store(str(tmp_path / "store.db")))
        assert (found.verdict, "--store" in found.remedy) == (Severity.BROKEN, True)

    def test_the_driver_of_gpus_is_shown_with_its_version(self, monkeypatch: pytest.MonkeyPatch) -> None:
        gpu = InstalledGpu(uuid="GPU-1", name="H200", driver="550.54", cuda=(12, 4))
        monkeypatch.setattr(software, "visible_gpus", lambda: (gpu,))
        found = {each.name: each for each in software.gpus()}
        assert found["GPU driver"].value == "550.54, runs CUDA up to 12.4"

    def test_what_is_absent_is_noted_with_a_remedy(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(software, "visible_gpus", tuple)
        monkeypatch.setattr(software, "_version", lambda name: "" if name in software.OPTIONAL else "1.0")
        *_, packages = software.versions()
        assert "driver" in only(software.gpus()).remedy and "pip install onnxruntime" in packages.remedy

    def test_a_port_in_use_is_noted(self, monkeypatch: pytest.MonkeyPatch) -> None:
        with socket.socket() as taken:
            taken.bind(("127.0.0.1", 0))
            taken.listen()
            monkeypatch.setattr(software, "PORT", taken.getsockname()[1])
            assert only(software.port()).verdict is Severity.NOTE

    def test_a_missing_linker_names_its_package(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("PATH", "")
        found = only(software.tools())
        assert (found.verdict, "apt install" in found.remedy) == (Severity.BROKEN, True)


def test_a_check_that_fails_does_not_end_the_others() -> None:
    def fails() -> list[Finding]:
        raise OSError("no such\n  place")

    first, second = examined([("odd", fails), ("next", lambda: good("next", "fine"))])
    assert (first.name, first.value) == ("odd", "can't be examined: no such place")
    assert second.value == "fine"


def test_the_command_answers_programs_too(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["doctor", "--json", "--seconds", "0.01", "--store", str(tmp_path / "store.db")]) == 0
    names = [each["name"] for each in json.loads(capsys.readouterr().out)]
    assert {"noise", "stolen time", "cores", "memory", "versions", "store"} <= set(names)


def test_a_time_that_makes_no_sense_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["doctor", "--seconds", "0"]) == 2
    assert "--seconds" in capsys.readouterr().err
