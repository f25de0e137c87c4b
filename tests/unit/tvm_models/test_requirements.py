"""Bundles name the implementers whose code is in them, and the libraries that this code needs."""

import re
from importlib import resources
from pathlib import Path
from types import SimpleNamespace
from typing import Any, ClassVar

import pytest

from tuneloom.backends.cuda.cublaslt.implementer import CublasImplementer
from tuneloom.backends.implementers import Claim, Implementer, Insert, ModelKernel, Requirement
from tuneloom.errors import BundleError
from tuneloom.model import Failure, SearchOptions, Task
from tuneloom.model.space import configured
from tuneloom.tuners.tvm.bundles.loading import load_bundle
from tuneloom.tuners.tvm.models.compiling import inserts, kernels
from tuneloom.tuners.tvm.models.compiling.inserts import told
from tuneloom.tuners.tvm.runner import machine
from tuneloom.tuners.tvm.runner.machine import load_libraries
from tuneloom.tuners.tvm.runner.model import Model
from tuneloom.tuners.tvm.runner.refused import Refused
from tuneloom.tuners.tvm.search import joint

MISSING = {"libraries": {"libweaver.so.9": "weaver-libs"}, "implementer": "weaver"}


class Weaver(Implementer):
    """An implementer whose code calls a library that nobody has."""

    name: ClassVar[str] = "weaver"
    requirements: ClassVar[tuple[Requirement, ...]] = (
        Requirement(libraries={"libweaver.so.9": "weaver-libs"}),
    )

    def claim(self, kernel: ModelKernel) -> Claim | None:
        return None

    def insert(self, claim: Any, configuration: Any, symbol: str) -> Insert | Failure:
        raise NotImplementedError


class Spinner(Weaver):
    """Another, whose code needs nothing."""

    name: ClassVar[str] = "spinner"
    requirements: ClassVar[tuple[Requirement, ...]] = ()


def test_a_bundle_tells_of_each_implementer_once_with_what_it_needs() -> None:
    found = told([Weaver(), Spinner(), Weaver()])
    assert found.implementers == ("weaver", "spinner") and found.requires == (MISSING,)


def test_a_bundle_tells_with_which_version_of_a_library_it_was_made(monkeypatch: pytest.MonkeyPatch) -> None:
    library = SimpleNamespace(cublasLtGetVersion=lambda: 120804)
    opened = {"libcublasLt.so.12": library}
    monkeypatch.setattr(inserts, "shared_library", lambda name, _package: opened.get(name))
    assert [one["version"] for one in told([CublasImplementer()]).requires] == ["12.8.4"]
    opened.clear()
    assert ["version" in one for one in told([CublasImplementer()]).requires] == [False]


def test_only_implementers_whose_code_is_in_the_model_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    backend = SimpleNamespace(implementers=lambda _target: (Weaver(), Spinner()))
    monkeypatch.setattr(kernels, "backend_of", lambda _target: backend)
    monkeypatch.setattr(
        kernels, "_kernels", lambda _lowered: [(None, key, None) for key in ("a", "b", "c", "d")]
    )
    schedules = {
        "a": configured("spinner", {}),
        "b": "[[], []]",
        "c": configured("weaver", {}),
        "of another model": configured("weaver", {}),
    }
    names = [one.name for one in kernels.implementers_in(SimpleNamespace(target=None), schedules, ["c"])]
    assert names == ["spinner"], "the weaver's schedule could not be compiled"


def test_a_missing_library_is_named_with_its_package() -> None:
    with pytest.raises(Refused, match=r"weaver .* needs libweaver\.so\.9; install the package weaver-libs$"):
        load_libraries([MISSING])


def test_a_library_that_the_linker_finds_is_enough() -> None:
    load_libraries([{**MISSING, "libraries": {"libc.so.6": "weaver-libs"}}])


def test_one_of_several_versions_of_a_library_is_enough() -> None:
    load_libraries([{**MISSING, "libraries": {"libweaver.so.9": "weaver-libs", "libc.so.6": "libc"}}])


def test_all_versions_that_would_do_are_named() -> None:
    either = {"libweaver.so.9": "weaver-libs", "libweaver.so.8": "weaver-8"}
    with pytest.raises(
        Refused, match=r"libweaver\.so\.9 or libweaver\.so\.8; install .* weaver-libs or weaver-8$"
    ):
        load_libraries([{**MISSING, "libraries": either}])


def test_bundles_accept_every_version_of_cublaslt_that_its_code_looks_for() -> None:
    (needed,) = CublasImplementer.requirements
    source = resources.files("tuneloom.backends.cuda.cublaslt").joinpath("product.c").read_text()
    assert re.findall(r'"(libcublasLt[^"]+)"', source) == list(needed.libraries)


def test_a_library_inside_an_installed_package_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    place = SimpleNamespace(name="libweaver.so.9", locate=lambda: Path("/site/weaver/lib/libweaver.so.9"))
    tried: list[str] = []

    def load(path: str) -> object:
        tried.append(path)
        if "/" not in path:
            raise OSError("not found")
        return object()

    monkeypatch.setattr(machine.metadata, "files", lambda _package: [place])
    monkeypatch.setattr(machine.ctypes, "CDLL", load)
    load_libraries([MISSING])
    assert tried == ["libweaver.so.9", "/site/weaver/lib/libweaver.so.9"]


def test_a_bundle_is_refused_before_anything_of_it_is_loaded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tuneloom.tuners.tvm.bundles.loading.check_cpu", lambda *_: None)
    target = '{"machine": "m68k", "mcpu": "", "cpu_features": [], "cpu_flags": {}, "device": "cpu"}'
    (tmp_path / "bundle.json").write_text(
        f'{{"format": 1, "name": "n", "inputs": [], "outputs": [], "target": {target}, "requires": '
        '[{"libraries": {"libweaver.so.9": "weaver-libs"}, "implementer": "weaver"}]}'
    )
    with pytest.raises(BundleError, match="install the package weaver-libs"):
        load_bundle(tmp_path)
    monkeypatch.setattr("tuneloom.tuners.tvm.runner.model.check_machine", lambda _target: None)
    with pytest.raises(Refused, match="install the package weaver-libs"):
        Model(tmp_path)


@pytest.mark.parametrize(("alone", "searched"), [(False, ["weaver", "spinner"]), (True, ["spinner"])])
def test_a_self_contained_bundle_is_searched_without_code_that_needs_libraries(
    monkeypatch: pytest.MonkeyPatch, alone: bool, searched: list[str]
) -> None:
    seen: list[str] = []

    class Listening:
        def __init__(self, name: str, *_: Any) -> None:
            seen.append(name)
            self.name = name

    monkeypatch.setattr(joint, "unpack", lambda _task: SimpleNamespace(target=None))
    monkeypatch.setattr(
        joint, "backend_of", lambda _target: SimpleNamespace(claims_alone=False, good_guesses=False)
    )
    monkeypatch.setattr(joint, "claims_on", lambda _kernel: iter([(Weaver(), None), (Spinner(), None)]))
    monkeypatch.setattr(joint, "ClaimSearch", Listening)
    monkeypatch.setattr(joint, "TvmSearch", lambda *_: SimpleNamespace())
    monkeypatch.setattr(joint, "default_candidate", lambda _kernel: SimpleNamespace(key="default"))
    options = SearchOptions(seed=0, trials=8, batch=4, self_contained=alone)
    joint.open_search(Task(key="k", name="k", payload=b""), options, ())
    assert seen == searched
