"""Reading TOML files that people write: every error names the file and the line."""

import re
import tomllib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from tuneloom.app.requests.toml_lines import TomlLines
from tuneloom.errors import JobsFileError
from tuneloom.model.numbers import COUNT, NumberKind

_AT_LINE = re.compile(r"\s*\(at line (\d+), column \d+\)|\s*\(at end of document\)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """What a value has to be, in words and as a test."""

    words: str
    fits: Callable[[Any], bool]

    def words_for(self, _value: Any) -> str:
        """What a value that does not fit should have been."""
        return self.words


def _is_shape(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and all(COUNT.fits(size) for size in value)


TEXT = Kind(words="text", fits=lambda value: isinstance(value, str) and bool(value))
YES_OR_NO = Kind(words="true or false", fits=lambda value: isinstance(value, bool))
SHAPES = Kind(
    words="a table of lists, as in { input = [1, 3, 224, 224] }",
    fits=lambda value: isinstance(value, dict) and all(_is_shape(shape) for shape in value.values()),
)


def one_of(names: Sequence[str]) -> Kind:
    """One of a few words."""
    return Kind(words=f"one of {', '.join(names)}", fits=lambda value: value in names)


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
        except (OSError, UnicodeDecodeError) as error:
            reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
            raise JobsFileError(f"can't read {path}: {reason}") from error
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

    def require_table(self, value: Any, what: str, *place: str | int) -> dict[str, Any]:
        if not isinstance(value, dict):
            raise self.wrong(f"{what} must be a table, got {shown(value)}", *place)
        return value

    def require(self, kind: Kind | NumberKind, value: Any, name: str, *place: str | int) -> None:
        """Raise unless a value is of its kind."""
        if not kind.fits(value):
            raise self.wrong(f"{name!r} must be {kind.words_for(value)}, got {shown(value)}", *place)


def nearest(key: str, known: Iterable[str]) -> str:
    """What may have been meant."""
    names = list(known)
    close = get_close_matches(key, names, 1, 0.6)
    return f"did you mean {close[0]!r}?" if close else f"known: {', '.join(names)}"


def shown(value: Any) -> str:
    """A value as TOML writes it, cut short."""
    text = str(value).lower() if isinstance(value, bool) else repr(value)
    return text if len(text) <= 60 else f"{text[:57]}…"


def _told(path: Path, text: str, message: str) -> str:
    found = _AT_LINE.search(message)
    line = int(found[1]) if found and found[1] else max(1, len(text.splitlines()))
    reason = _AT_LINE.sub("", message)
    return f"{path}, line {line}: {reason[:1].lower()}{reason[1:]}"
