"""Where TVM finds CUDA's headers and compiler, and what is said where it finds none."""

import os
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple

import pytest

from tuneloom.backends.cuda import headers
from tuneloom.errors import TargetError


@pytest.fixture
def bare(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A machine without a toolkit and packages; a folder for them."""
    for name in ("CUDA_PATH", "TVM_CUDA_NVRTC_EXTRA_OPTS"):
        monkeypatch.setenv(name, "")  # so that it is put back afterwards
        monkeypatch.delenv(name)
    monkeypatch.setattr("shutil.which", lambda program: None)
    monkeypatch.setattr(headers, "_USUAL", tmp_path / "cuda")
    monkeypatch.setattr(headers, "find_spec", lambda name: None)
    headers.point_to_headers.cache_clear()
    return tmp_path


def with_headers(root: Path) -> Path:
    for folder in (root / "include", root / "include" / "cccl"):
        folder.mkdir(parents=True)
    (root / "include" / "cuda_runtime.h").touch()
    return root


def packaged(folder: Path, monkeypatch: pytest.MonkeyPatch, *names: str) -> None:
    """Packages of NVIDIA in a folder; those with the headers and, if named, the bindings of the compiler."""
    spec = ModuleSpec("nvidia", None, is_package=True)
    spec.submodule_search_locations = [str(folder)]
    monkeypatch.setattr(headers, "find_spec", lambda name: spec if name in ("nvidia", *names) else None)


class Name(NamedTuple):
    name_hint: str


def module(text: str) -> Any:
    """One kernel with this text."""
    return SimpleNamespace(functions={Name("sum"): SimpleNamespace(script=lambda: text)})


def test_headers_of_packages_serve_where_no_toolkit_is(bare: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = with_headers(bare / "nvidia" / "cu13")
    packaged(bare / "nvidia", monkeypatch)
    headers.point_to_headers()
    assert os.environ["CUDA_PATH"] == str(root)
    assert os.environ["TVM_CUDA_NVRTC_EXTRA_OPTS"] == f"-I{root / 'include' / 'cccl'}"


def test_a_toolkit_goes_before_packages(bare: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with_headers(bare / "nvidia" / "cu13")
    packaged(bare / "nvidia", monkeypatch)
    toolkit = with_headers(bare / "cuda")
    headers.point_to_headers()
    assert os.environ["CUDA_PATH"] == str(toolkit)


def test_a_program_without_headers_beside_it_is_no_toolkit(
    bare: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("shutil.which", lambda program: str(bare / "bin" / "nvcc"))
    root = with_headers(bare / "nvidia" / "cu13")
    packaged(bare / "nvidia", monkeypatch)
    headers.point_to_headers()
    assert os.environ["CUDA_PATH"] == str(root)


def test_what_the_user_says_is_not_changed(bare: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with_headers(bare / "cuda")
    monkeypatch.setenv("CUDA_PATH", "/mine")
    headers.point_to_headers()
    assert os.environ["CUDA_PATH"] == "/mine"


def test_kernels_without_a_template_need_a_compiler(bare: Path) -> None:
    with pytest.raises(TargetError, match=r"the kernel sum, .* pip install 'tuneloom\[cuda\]'"):
        headers.require_compiler(module('for i in T.thread_binding(32, thread="threadIdx.x"):'))


def test_kernels_that_are_compiled_already_need_none(bare: Path) -> None:
    compiled = module('T.call_packed("kernel", x, y)')
    assert headers.require_compiler(compiled) is compiled


def test_a_compiler_without_headers_is_none(bare: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    loops = module("T.thread_binding")
    packaged(bare, monkeypatch, "cuda", "cuda.bindings")
    with pytest.raises(TargetError):
        headers.require_compiler(loops)
    with_headers(bare / "cuda")
    assert headers.require_compiler(loops) is loops
