"""A bundle as one file: a zip archive whose members are not compressed, so that weights can be mapped."""

import atexit
import io
import json
import shutil
import tempfile
import zipfile
from functools import cache
from pathlib import Path

from tuneloom.errors import BundleError
from tuneloom.tuners.tvm.models.compiling.storing import PARAMETERS
from tuneloom.tuners.tvm.runner.asked import ASKED, ASKED_ELSEWHERE
from tuneloom.tuners.tvm.runner.weights import ALIGNMENT, ELSEWHERE

SUFFIX = ".tlb"
_HEADER_BYTES, _SIZES_BYTES = 30, 20
"""Of a member of an archive: before its name, and for sizes beyond 4 GiB after it."""
_EPOCH = (1980, 1, 1, 0, 0, 0)


def pack(folder: Path, path: Path) -> None:
    """Write the bundle in a folder as one file; every member begins where compiled code may read it."""
    growing = path.with_name(f".{path.name}.unfinished-file")
    try:
        with zipfile.ZipFile(growing, "w") as archive:
            for file in sorted(one for one in folder.rglob("*") if one.is_file()):
                info = zipfile.ZipInfo(file.relative_to(folder).as_posix(), date_time=_EPOCH)
                assert archive.fp is not None
                name_bytes = len(info.filename.encode())
                info.extra = _filler(archive.fp.tell() + _HEADER_BYTES + name_bytes + _SIZES_BYTES)
                with file.open("rb") as content, archive.open(info, "w", force_zip64=True) as member:
                    shutil.copyfileobj(content, member)
        growing.replace(path)
    finally:
        growing.unlink(missing_ok=True)


def _filler(begin: int) -> bytes:
    """An extra field, whose own header takes four bytes, that brings the content to the next boundary."""
    size = -(begin + 4) % ALIGNMENT
    return (0xD935).to_bytes(2, "little") + size.to_bytes(2, "little") + bytes(size)


def opened(path: Path) -> Path:
    """The folder of a bundle; of one that is a file, a folder that lasts as long as this process.

    Weights stay in the file. Raises BundleError for a file that is no bundle.
    """
    if not path.is_file():
        return path
    found = path.stat()
    return _unpacked(path.absolute(), found.st_size, found.st_mtime_ns)


def unpacked(content: bytes) -> Path:
    """The folder of a bundle whose file has this content; it lasts as long as this process.

    Raises BundleError for what is no bundle.
    """
    folder = _temporary()
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            archive.extractall(folder)
    except (zipfile.BadZipFile, OSError) as error:
        raise BundleError(f"these {len(content)} bytes are not a bundle: {error}") from error
    return folder


def copy(bundle: Path, place: Path) -> None:
    """Copy a bundle, a folder or a file, to one or the other: the name says to which."""
    if not bundle.is_file():
        pack(bundle, place) if place.suffix == SUFFIX else shutil.copytree(bundle, place, dirs_exist_ok=True)
    elif place.suffix == SUFFIX:
        shutil.copyfile(bundle, place)
    else:
        with zipfile.ZipFile(bundle) as archive:
            archive.extractall(place)


def _temporary() -> Path:
    """A new folder that lasts as long as this process."""
    folder = Path(tempfile.mkdtemp(prefix="tuneloom-bundle-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


@cache
def _unpacked(path: Path, _size: int, _changed_ns: int) -> Path:
    folder = _temporary()
    (folder / ASKED_ELSEWHERE).write_text(json.dumps(f"{path}.{ASKED}"))
    try:
        with zipfile.ZipFile(path) as archive:
            for info in archive.infolist():
                if Path(info.filename).name != PARAMETERS:
                    archive.extract(info, folder)
                    continue
                place = folder / Path(info.filename).parent
                place.mkdir(parents=True, exist_ok=True)
                (place / ELSEWHERE).write_text(json.dumps([str(path), _begin(path, info)]))
    except (OSError, zipfile.BadZipFile, ValueError) as error:
        raise BundleError(f"{path} is not a bundle: {error}; `tuneloom tune --out` writes one") from error
    return folder


def _begin(path: Path, info: zipfile.ZipInfo) -> int:
    """Where the content of a member begins; its own header may differ from that of the directory."""
    if info.compress_type != zipfile.ZIP_STORED:
        raise ValueError("its weights are compressed")
    with path.open("rb") as file:
        file.seek(info.header_offset + 26)
        name, extra = (int.from_bytes(file.read(2), "little") for _ in range(2))
    return info.header_offset + _HEADER_BYTES + name + extra
