"""From a downloaded bundle to a folder, all of it or nothing."""

import hashlib
import tarfile
import tempfile
from pathlib import Path
from types import TracebackType

from tuneloom.errors import OutputError, ServiceError


class BundleFile:
    """A bundle on its way: pieces come in, a folder comes out.

    ```python
    with BundleFile(folder) as bundle:
        for piece in pieces:
            bundle.write(piece)
        bundle.unpack(digest)
    ```
    """

    def __init__(self, folder: Path) -> None:
        if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
            raise OutputError(f"{folder} is not empty; choose another folder")
        self._folder = folder
        self._digest = hashlib.sha256()

    def __enter__(self) -> "BundleFile":
        self._folder.absolute().parent.mkdir(parents=True, exist_ok=True)
        self._scratch = tempfile.TemporaryDirectory(dir=self._folder.absolute().parent, prefix=".fetch-")
        self._path = Path(self._scratch.name) / "bundle.tar.gz"
        self._file = self._path.open("wb")
        return self

    def __exit__(
        self, _kind: type[BaseException] | None, _error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        self._file.close()
        self._scratch.cleanup()

    def write(self, piece: bytes) -> None:
        """Take a piece of the file."""
        self._digest.update(piece)
        self._file.write(piece)

    def unpack(self, digest: str) -> Path:
        """Put the bundle into its folder; raises ServiceError if it is not the one with this digest."""
        self._file.close()
        if self._digest.hexdigest() != digest:
            raise ServiceError("the bundle was damaged on its way; fetch it again")
        inside = Path(self._scratch.name) / "bundle"
        with tarfile.open(self._path) as archive:
            _extract(archive, inside)
        if self._folder.exists():
            self._folder.rmdir()
        inside.replace(self._folder)
        return self._folder


def _extract(archive: tarfile.TarFile, inside: Path) -> None:
    """Put the files of an archive below a folder; Python has a filter for that since 3.11.4."""
    if hasattr(tarfile, "data_filter"):
        archive.extractall(inside, filter="data")
        return
    for member in archive.getmembers():
        place = (inside / member.name).resolve()
        if not (member.isfile() or member.isdir()) or not place.is_relative_to(inside.resolve()):
            raise ServiceError(f"the bundle has {member.name!r}, which is outside of it; fetch it again")
    archive.extractall(inside)
