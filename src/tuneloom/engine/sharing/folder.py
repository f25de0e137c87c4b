"""The folder of a machine in which its processes agree on who uses which device."""

import os
from pathlib import Path
from urllib.parse import quote

from tuneloom.errors import EngineError

VARIABLE = "TUNELOOM_DEVICE_LOCKS"
_DEFAULT = "/tmp/tuneloom-devices"  # TMPDIR differs from user to user
_BOOT = Path("/proc/sys/kernel/random/boot_id")
_EVERYBODY = 0o1777  # whoever made a file may remove it, and nobody else


def boot_id() -> str:
    """What this machine has been called since it was started; the same in all its containers."""
    try:
        return _BOOT.read_text().strip()
    except OSError:
        return "unknown"


def shared_folder(*parts: str) -> Path:
    """A folder that every user of this machine may write to; raises EngineError if there can't be one.

    A folder that several machines see, as on a network drive, has one in it for each of them.
    """
    folder = Path(os.environ.get(VARIABLE) or _DEFAULT)
    try:
        _make(folder)
        for part in (boot_id(), *parts):
            folder /= part
            _make(folder)
    except OSError as error:
        raise EngineError(
            f"devices can't be locked in {folder}: {error.strerror}; set {VARIABLE} to a folder that all "
            "users of this machine may write to"
        ) from error
    return folder


def open_shared(folder: Path, name: str) -> int:
    """A descriptor of a file in such a folder, made if need be, that nothing but a lock is wanted of."""
    path = folder / quote(name, safe="")
    while True:
        try:  # without O_CREAT: Linux refuses that for files of others in a folder of everybody's
            return os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
        except FileNotFoundError:
            pass
        try:
            made = os.open(path, os.O_RDONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666)
        except FileExistsError:
            continue
        os.fchmod(made, 0o666)
        return made


def _make(folder: Path) -> None:
    try:
        folder.mkdir()
    except FileExistsError:
        return
    folder.chmod(_EVERYBODY)
