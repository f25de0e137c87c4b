"""Reading TOML files that people write: every error names the file and the line."""

import re
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tuneloom.app.requests.fields import nearest, shown
from tuneloom.app.requests.toml_lines import TomlLines
from tuneloom.errors import JobsFileError
from tuneloom.model.fields import FieldType

_AT_LINE = re.compile(r"\s*\(at line (\d+), column \d+\)|\s*\(at end of document\)")


@dataclass(frozen=True, slots=True)
class TomlFile:
    """A file as data, and where its parts stand."""

    path: Path
    data: dict[str, Any]
    lines: TomlLines

    @classmethod
    def read(cls, path: Path) -> "TomlFile":
        """Raises JobsFileError if it can't be read or is no TOML."""
        try:
            text = path.read_text(encoding="utf-8")
        except UnicodeDecodeError as error:
            raise JobsFileError(f"can't read {path}: it is no text in UTF-8; check the path") from error
        except OSError as error:
            raise JobsFileError(f"can't read {path}: {error.strerror or error}; check the path") from error
        try:
            return cls(path, tomllib.loads(text), TomlLines(text))
        except tomllib.TOMLDecodeError as error:
            raise JobsFileError(_told(path, text, str(error))) from error

    def wrong(self, message: str, *place: str | int) -> JobsFileError:
        """The error for something at this place of the file."""
        return JobsFileError(f"{self.path}, line {self.lines.of(*place)}: {message}")

    def require_known(self, table: Mapping[str, Any], known: Iterable[str], *place: str | int) -> None:
        """Raise for a key that nobody knows, with the nearest that somebody does."""
        names = list(known)
        for key in table:
            if key not in names:
                raise self.wrong(f"unknown key {key!r}; {nearest(key, names)}", *place, key)

    def require_values(
        self, table: Mapping[str, Any], known: Mapping[str, FieldType], *place: str | int
    ) -> None:
        """Raise for a key that nobody knows, or a value that is not of its kind."""
        self.require_known(table, known, *place)
        for key, value in table.items():
            self.require(known[key], value, key, *place, key)

    def require_table(self, value: Any, what: str, *place: str | int) -> dict[str, Any]:
        if not isinstance(value, dict):
            raise self.wrong(f"{what} must be a table, got {shown(value)}", *place)
        return value

    def require(self, kind: FieldType, value: Any, name: str, *place: str | int) -> None:
        """Raise unless a value is of its kind."""
        if not kind.fits(value):
            raise self.wrong(f"{name!r} must be {kind.words_for(value)}, got {shown(value)}", *place)


def _told(path: Path, text: str, message: str) -> str:
    found = _AT_LINE.search(message)
    line = int(found[1]) if found and found[1] else max(1, len(text.splitlines()))
    reason = _AT_LINE.sub("", message)
    return f"{path}, line {line}: {reason[:1].lower()}{reason[1:]}"
