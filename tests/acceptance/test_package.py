"""What is published: a wheel and a source archive that hold everything, installed where no repository is.

Each environment has what the wheel's metadata names for some extras and nothing else: links to the packages
that are installed here, or, with TUNELOOM_INSTALL=pip, downloads (`make install-test`).
"""

import os
import re
import shutil
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from importlib.metadata import PackageNotFoundError
from pathlib import Path

import pytest

from support.installed import downloaded, linked
from support.models.tflite_files import write_tflite

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src" / "tuneloom"
INSTALL = downloaded if os.environ.get("TUNELOOM_INSTALL") == "pip" else linked
NOWHERE = "http://127.0.0.1:9"
NO_STORE = "postgresql://user@127.0.0.1:9/none"
PROGRAM = ("-m", "tuneloom")
DOCTOR = (*PROGRAM, "doctor", "--seconds", "0.1")
NAMED_IN_ERRORS: Mapping[str, Sequence[str]] = {
    "client": ("jobs", "--server", NOWHERE),
    "postgres": ("runs", "--store", NO_STORE),
    "server": ("serve",),
}
COMPILER = """
import os
from cuda.bindings import nvrtc
from tuneloom.backends.cuda.headers import point_to_headers
point_to_headers()
print(nvrtc.nvrtcVersion(), os.environ["CUDA_PATH"])
"""
"""Shows that CUDA's compiler answers, and where its headers are."""
WORKS: Mapping[str, tuple[Sequence[str], str]] = {
    "client": ((*PROGRAM, "jobs", "--server", NOWHERE), "no token for http"),
    "cuda": (("-c", COMPILER), r"NVRTC_SUCCESS.* /.*cu"),
    "farm,onnxruntime,triton": (DOCTOR, r"onnxruntime 1\.\d.* triton 3\.\d.* ray 2\.\d"),
    "postgres": ((*PROGRAM, "runs", "--store", NO_STORE), "Connection refused"),
    "s3": (("-c", "import fsspec; print(fsspec.get_filesystem_class('s3').protocol)"), "s3"),
    "server": (("-m", "tuneloom.server.describing"), "/api/v1/jobs"),
    "tflite": ((*PROGRAM, "tasks", "net.tflite"), "conv2d"),
    "torch": (DOCTOR, r"torch 2\.\d"),
}
"""What extras are for: words for Python, and a pattern of what they print."""


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with both archives, built from a copy since setuptools writes beside the source."""
    folder = tmp_path_factory.mktemp("package")
    copy = folder / "source"
    copy.mkdir()
    # Other processes of the tests compile modules meanwhile: their files come and go.
    shutil.copytree(ROOT / "src", copy / "src", ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, copy)
    build = "from setuptools.build_meta import *; build_sdist('../dist'); build_wheel('../dist')"
    subprocess.run([sys.executable, "-c", build], cwd=copy, check=True, capture_output=True)
    return folder / "dist"


@pytest.fixture(scope="module")
def python(built: Path, tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """The Python of an environment with the wheel and extras, or with '' for none."""
    [wheel] = built.glob("*.whl")
    root = tmp_path_factory.mktemp("environments")

    @cache
    def installed(extras: str) -> Path:
        try:
            return INSTALL(root, wheel, extras)
        except PackageNotFoundError as missing:
            pytest.skip(f"{missing}; `make install-test` tries {extras}")

    return installed


def run(python: Path, folder: Path, *words: str) -> "subprocess.CompletedProcess[str]":
    """What Python does with these words where neither the repository nor settings of these tests are seen."""
    environment = {k: v for k, v in os.environ.items() if not k.startswith(("PYTHON", "COV"))}
    environment["TUNELOOM_HOME"] = str(folder / "home")
    return subprocess.run(
        [str(python), *words], cwd=folder, env=environment, capture_output=True, text=True, check=False
    )


def source_files() -> set[str]:
    """Every file of the package that is not made by running it."""
    files = (path for path in SOURCE.rglob("*") if path.is_file() and "__pycache__" not in path.parts)
    return {f"tuneloom/{path.relative_to(SOURCE)}" for path in files}


def test_the_wheel_holds_every_file_of_the_package(built: Path) -> None:
    [wheel] = built.glob("*.whl")
    assert source_files() <= set(zipfile.ZipFile(wheel).namelist())


def test_the_source_archive_holds_every_file_of_the_package(built: Path) -> None:
    [archive] = built.glob("*.tar.gz")
    with tarfile.open(archive) as opened:
        names = {name.partition("/src/")[2] for name in opened.getnames()}
    assert source_files() <= names


def test_what_indexes_show_is_complete(built: Path) -> None:
    [wheel] = built.glob("*.whl")
    with zipfile.ZipFile(wheel) as opened:
        [name] = [each for each in opened.namelist() if each.endswith("METADATA")]
        metadata = opened.read(name).decode()
    for line in ("Name: tuneloom", "License-Expression: Apache-2.0", "Requires-Python: >=3.11", "Summary: "):
        assert f"\n{line}" in metadata
    assert "Description-Content-Type: text/markdown" in metadata


def test_the_installed_program_tunes_and_reports_without_the_repository(
    python: Callable[[str], Path], tmp_path: Path
) -> None:
    here = python("")
    for words in (
        ["tune", "mock:tasks=2,build=0.001", "--trials", "6"],
        ["report", "last", "-o", "page.html"],
    ):
        done = run(here, tmp_path, "-m", "tuneloom", *words)
        assert done.returncode == 0, done.stderr
    place = run(here, tmp_path, "-c", "import tuneloom; print(tuneloom.__file__)")
    assert Path(place.stdout.strip()).is_relative_to(here.parent.parent)
    assert (tmp_path / "page.html").stat().st_size > 10_000


def test_the_command_says_its_version_and_how_it_is_used(
    python: Callable[[str], Path], tmp_path: Path
) -> None:
    command = python("").with_name("tuneloom")
    shown = subprocess.run([command, "--version"], capture_output=True, text=True, check=True).stdout
    assert shown == run(python(""), tmp_path, "-m", "tuneloom", "--version").stdout != ""
    for words, expected in ((["demo", "--help"], "--trials"), (["doctor", "--seconds", "0.1"], "tuneloom")):
        done = run(python(""), tmp_path, "-m", "tuneloom", *words)
        assert done.returncode == 0 and expected in done.stdout, done.stderr


@pytest.mark.parametrize("extra", NAMED_IN_ERRORS)
def test_without_an_extra_the_command_that_needs_it_names_it(
    extra: str, python: Callable[[str], Path], tmp_path: Path
) -> None:
    done = run(python(""), tmp_path, "-m", "tuneloom", *NAMED_IN_ERRORS[extra])
    assert done.returncode == 2 and f"pip install 'tuneloom[{extra}]'" in done.stderr, done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("extras", WORKS)
def test_with_extras_what_needs_them_works(
    extras: str, python: Callable[[str], Path], tmp_path: Path
) -> None:
    write_tflite(tmp_path / "net.tflite")
    words, expected = WORKS[extras]
    done = run(python(extras), tmp_path, *words)
    assert re.search(expected, done.stdout + done.stderr), done.stdout + done.stderr
    assert "Traceback" not in done.stderr


def test_every_extra_for_users_is_tried() -> None:
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    assert set(",".join(WORKS).split(",")) == set(extras) - {"bench", "dev", "docs", "release"}
