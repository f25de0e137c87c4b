"""Reading TOML files that people write: every error names the file and the line.

The standard library reads TOML but forgets the lines. TomlLines knows just enough of the syntax to find
headers and keys: strings, comments, brackets and nothing else.
"""

import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tuneloom.app.requests.schema import nearest, shown
from tuneloom.errors import JobsFileError
from tuneloom.model.fields import FieldType

KeyPath = tuple[str | int, ...]

_HEADER = re.compile(r"\s*(\[\[?)([^\[\]]+)\]\]?\s*(#.*)?$")
_KEY = re.compile(
    r"""\s*((?:[A-Za-z0-9_-]+|"[^"]*"|'[^']*')(?:\s*\.\s*(?:[A-Za-z0-9_-]+|"[^"]*"|'[^']*'))*)\s*="""
)
_PART = re.compile(r"""[A-Za-z0-9_-]+|"[^"]*"|'[^']*'""")
_QUOTES = ('"""', "'''", '"', "'")


class TomlLines:
    """The line of every table and key of a TOML text that parses."""

    def __init__(self, text: str) -> None:
        self._lines: dict[KeyPath, int] = {}
        self._counts: dict[KeyPath, int] = {}
        table: KeyPath = ()
        for number, line in _statements(text):
            if header := _HEADER.match(line):
                table = self._opened(_parts(header[2]), repeated=header[1] == "[[")
                self._lines.setdefault(table, number)
            elif key := _KEY.match(line):
                self._note(table + _parts(key[1]), number, len(table))

    def of(self, *path: str | int) -> int:
        """The line of a key or table; of the nearest thing around it if it has none of its own."""
        while path and path not in self._lines:
            path = path[:-1]
        return self._lines.get(path, 1)

    def _opened(self, names: KeyPath, *, repeated: bool) -> KeyPath:
        """A header's table with the numbers of the lists it lies in."""
        table: KeyPath = ()
        for place, name in enumerate(names):
            table += (name,)
            last = place == len(names) - 1
            if last and repeated:
                self._counts[table] = self._counts.get(table, -1) + 1
            if table in self._counts:
                table += (self._counts[table],)
        return table

    def _note(self, path: KeyPath, number: int, known: int) -> None:
        for length in range(known + 1, len(path) + 1):
            self._lines.setdefault(path[:length], number)


def _parts(text: str) -> KeyPath:
    return tuple(part.strip("\"'") for part in _PART.findall(text))


def _statements(text: str) -> Iterator[tuple[int, str]]:
    """The lines on which something begins, with their numbers."""
    depth, quote = 0, ""
    for number, line in enumerate(text.splitlines(), 1):
        if not depth and not quote:
            yield number, line
        depth, quote = _after(line, depth, quote)


def _after(line: str, depth: int, quote: str) -> tuple[int, str]:
    """How deep in brackets, and in which string, a line ends."""
    place = 0
    while place < len(line):
        if quote:
            if line[place] == "\\" and quote[0] == '"':
                place += 2
                continue
            if line.startswith(quote, place):
                place += len(quote)
                quote = ""
                continue
        elif line[place] == "#":
            break
        else:
            quote = next((q for q in _QUOTES if line.startswith(q, place)), "")
            depth += (line[place] in "[{") - (line[place] in "]}")
            place += max(0, len(quote) - 1)
        place += 1
    return depth, quote if len(quote) == 3 else ""


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
