"""What is published: a wheel and a source archive that hold everything, installed where no repository is."""

import os
import shutil
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src" / "tuneloom"


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
def python(built: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An environment with the wheel, in front of the packages of this one that it depends on."""
    folder = tmp_path_factory.mktemp("environment")
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(folder)], check=True)
    python = folder / "bin" / "python"
    packages = next((folder / "lib").glob("python*")) / "site-packages"
    [wheel] = built.glob("*.whl")
    command = [
        sys.executable,
        "-m",
        "pip",
        "--python",
        str(python),
        "install",
        "-q",
        "--no-deps",
        "--no-index",
    ]
    subprocess.run([*command, str(wheel)], check=True, capture_output=True)
    borrowed = [path for path in sys.path if path.endswith("-packages")]
    (packages / "borrowed.pth").write_text("\n".join(borrowed))
    return python


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


def test_the_installed_program_tunes_and_reports_without_the_repository(python: Path, tmp_path: Path) -> None:
    environment = {k: v for k, v in os.environ.items() if not k.startswith(("PYTHON", "COV"))}
    environment["TUNELOOM_HOME"] = str(tmp_path / "home")
    for words in (
        ["tune", "mock:tasks=2,build=0.001", "--trials", "6"],
        ["report", "last", "-o", "page.html"],
    ):
        done = subprocess.run(
            [str(python), "-m", "tuneloom", *words],
            cwd=tmp_path,
            env=environment,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
    where = "import tuneloom; print(tuneloom.__file__)"
    place = subprocess.run(
        [str(python), "-c", where], env=environment, capture_output=True, text=True, check=True
    )
    assert Path(place.stdout.strip()).is_relative_to(python.parent.parent)
    assert (tmp_path / "page.html").stat().st_size > 10_000
