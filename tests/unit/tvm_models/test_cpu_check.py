"""Code built for one CPU is refused on a lesser one, before it dies."""

import platform
from pathlib import Path

import pytest

from tuneloom.backends.cpu import target
from tuneloom.backends.cpu.features import (
    check_cpu,
    cpu_features_needed,
    kernel_flags,
    missing_cpu_features,
    present_cpu_features,
)
from tuneloom.errors import BundleError

OLD = "processor\t: 0\nflags\t\t: fpu sse sse2 pni ssse3 sse4_1 sse4_2 avx avx2 fma bmi1 bmi2 abm\n"


@pytest.fixture
def old_cpu(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(platform, "machine", lambda: "x86_64")
    path = tmp_path / "cpuinfo"
    path.write_text(OLD)
    return path


def test_only_features_that_compilers_use_are_needed() -> None:
    assert cpu_features_needed(["avx512f", "sgx", "fma", "prefer-256-bit"]) == ("avx512f", "fma")


def test_features_have_other_names_in_the_kernel(old_cpu: Path) -> None:
    assert missing_cpu_features(["sse4.1", "lzcnt", "bmi", "sse3", "fma"], old_cpu) == ()


def test_missing_features_are_named(old_cpu: Path) -> None:
    assert missing_cpu_features(["avx2", "avx512f", "avx512vnni"], old_cpu) == ("avx512f", "avx512vnni")


def test_tile_registers_are_needed_only_by_code_that_asks_for_them() -> None:
    assert cpu_features_needed(["amx-tile", "amx-bf16", "fma"]) == ("fma",)
    assert kernel_flags(["amx-tile", "fma"]) == {"amx-tile": "amx_tile", "fma": "fma"}


def test_unknown_cpu_is_given_the_benefit_of_the_doubt(tmp_path: Path) -> None:
    assert missing_cpu_features(["avx512f"], tmp_path / "nothing") == ()


def test_only_features_that_a_cpu_tells_are_used_without_being_named(old_cpu: Path, tmp_path: Path) -> None:
    assert present_cpu_features(["fma", "amx-tile"], old_cpu) == ("fma",)
    assert present_cpu_features(["fma"], tmp_path / "nothing") == ()


@pytest.mark.skipif(platform.machine() != "x86_64", reason="its features are those of x86")
def test_features_that_the_name_of_a_cpu_hides_are_asked_for_unless_somebody_named_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(target, "host_cpu", lambda: "skylake-avx512")
    monkeypatch.setattr(target, "present_cpu_features", lambda asked: tuple({"avx512vnni"} & set(asked)))
    own = target.cpu_target({}, 1)
    assert own.config["mattr"] == ["+avx512vnni"] and own.dots is not None
    for named in ({"mcpu": "skylake-avx512"}, {"mattr": ["+avx512vl"]}):
        assert target.cpu_target(named, 1).config.get("mattr") == named.get("mattr")


def test_lesser_cpu_is_refused_with_the_remedy(old_cpu: Path) -> None:
    with pytest.raises(BundleError, match=r"emeraldrapids.*avx512f.*tune it again here"):
        check_cpu(["avx512f"], "emeraldrapids", platform.machine(), old_cpu)


def test_an_emulated_machine_sees_the_features_of_another_and_gets_the_benefit_of_the_doubt(
    old_cpu: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(platform, "machine", lambda: "aarch64")
    assert missing_cpu_features(["neon"], old_cpu) == ()


def test_other_architecture_is_refused(old_cpu: Path) -> None:
    with pytest.raises(BundleError, match="built for m68k"):
        check_cpu([], "68040", "m68k", old_cpu)
