"""A downloaded bundle becomes a folder, on every version of Python."""

import hashlib
import io
import tarfile
import warnings
from pathlib import Path

import pytest

from tuneloom.client.unpacking import BundleFile
from tuneloom.errors import ServiceError


def unpacked(folder: Path, *names: str) -> Path:
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w:gz") as archive:
        for name in names:
            member = tarfile.TarInfo(name)
            member.size = 2
            archive.addfile(member, io.BytesIO(b"{}"))
    content = made.getvalue()
    with BundleFile(folder) as bundle, warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # newer versions want a filter
        bundle.write(content)
        return bundle.unpack(hashlib.sha256(content).hexdigest())


@pytest.fixture
def old(monkeypatch: pytest.MonkeyPatch) -> None:
    """Python 3.11.2, as Debian 12 has it."""
    monkeypatch.delattr(tarfile, "data_filter")


def test_files_of_a_bundle_are_put_into_its_folder(tmp_path: Path) -> None:
    assert (
        unpacked(tmp_path / "fast", "bundle.json", "shapes_1/model.so") / "bundle.json"
    ).read_text() == "{}"


@pytest.mark.usefixtures("old")
def test_a_python_without_filters_unpacks_a_bundle_too(tmp_path: Path) -> None:
    assert (
        unpacked(tmp_path / "fast", "bundle.json", "shapes_1/model.so") / "bundle.json"
    ).read_text() == "{}"


@pytest.mark.usefixtures("old")
def test_a_python_without_filters_lets_nothing_out_of_the_folder(tmp_path: Path) -> None:
    with pytest.raises(ServiceError, match=r"'\.\./\.\./evil', which is outside"):
        unpacked(tmp_path / "fast", "../../evil")
    assert not (tmp_path / "fast").exists()
