"""Reading and writing recorded spaces; the format is found by looking, not by the name."""

import gzip
import json
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tuneloom.errors import OutputError, RecordsError
from tuneloom.tuners.replay import csv_format, kernel_tuner_format, ktt_format, t4_format
from tuneloom.tuners.replay.recording import Recording

FORMATS = ("csv", "kernel-tuner", "ktt", "t4")
_WRITERS: dict[str, Callable[[Recording], str]] = {
    "csv": csv_format.written,
    "kernel-tuner": kernel_tuner_format.written,
    "ktt": ktt_format.written,
    "t4": t4_format.written,
}


def read(path: Path) -> Recording:
    """Read a recorded space in any known format; raises RecordsError naming file and place."""
    text, name = _text(path), path.name.removesuffix(".gz").rsplit(".", 1)[0]
    if not text.strip():
        raise RecordsError(f"{path} is empty")
    if text.lstrip()[0] not in "{[":
        return csv_format.parsed(name, text)
    return _from_json(name, _loaded(path, text))


def write(recording: Recording, path: Path, form: str) -> None:
    """Write a recording, compressed where the name ends in .gz; raises OutputError if it can't be written."""
    if form not in _WRITERS:
        raise OutputError(f"no format {form!r}; known: {', '.join(FORMATS)}")
    text = _WRITERS[form](recording).encode()
    try:
        path.write_bytes(gzip.compress(text, mtime=0) if path.suffix == ".gz" else text)
    except OSError as error:
        raise OutputError(f"{path} can't be written: {error.strerror or error}") from None


def _text(path: Path) -> str:
    try:
        raw = path.read_bytes()
        return (gzip.decompress(raw) if raw[:2] == b"\x1f\x8b" else raw).decode()
    except (EOFError, zlib.error) as error:
        raise RecordsError(f"{path} can't be read: {error}; export it again") from None
    except OSError as error:
        raise RecordsError(f"{path} can't be read: {error.strerror or error}; check the path") from None
    except UnicodeDecodeError:
        raise RecordsError(f"{path} is not text; give a file of `tuneloom kernel export`") from None


def _loaded(path: Path, text: str) -> Any:
    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        repaired = kernel_tuner_format.closed(text)
        if repaired is not None:
            return repaired
        raise RecordsError(f"{path} is not JSON at line {error.lineno}: {error.msg}") from None


def _from_json(name: str, data: Any) -> Recording:
    if isinstance(data, dict) and "cache" in data:
        return kernel_tuner_format.parsed(name, data)
    if isinstance(data, dict) and isinstance(data.get("Results"), list):
        return ktt_format.parsed(name, data)
    if isinstance(data, dict) and isinstance(data.get("results"), list):
        return t4_format.parsed(name, data)
    raise RecordsError(
        f"{name}: JSON of no known kind; a Kernel Tuner cache, KTT output or T4 results are known"
    )
