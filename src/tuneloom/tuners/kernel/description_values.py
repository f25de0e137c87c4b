"""What may stand in a kernel's file: the sections, their keys, and what each value has to be."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from tuneloom.errors import SpaceError


@dataclass(frozen=True, slots=True)
class ValueKind:
    """What a value has to be, in words and as a test."""

    words: str
    fits: Callable[[Any], bool]


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _is_whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _is_text(value: Any) -> bool:
    return isinstance(value, str) and bool(value)


def _list_of(fits: Callable[[Any], bool]) -> Callable[[Any], bool]:
    return lambda value: isinstance(value, list) and all(fits(each) for each in value)


_TEXT = ValueKind("text", _is_text)
_TEXTS = ValueKind("a list of texts", _list_of(_is_text))
_NUMBER = ValueKind("a number", _is_number)
_WHOLE = ValueKind("a whole number", _is_whole)
_SHAPE = ValueKind("a list of whole numbers", _list_of(_is_whole))
_VALUES = ValueKind("a list of values", lambda value: isinstance(value, list))
_TRUTH = ValueKind("true or false", lambda value: isinstance(value, bool))
_SIZES = ValueKind(
    "a list of one to three expressions over the knobs",
    lambda value: isinstance(value, list) and 1 <= len(value) <= 3,
)
_ANY_NAME = ""
_SECTIONS: Mapping[str, Mapping[str, ValueKind]] = {
    "kernel": {
        "name": _TEXT,
        "language": _TEXT,
        "source": _TEXT,
        "entry": _TEXT,
        "reference": _TEXT,
        "flags": _TEXTS,
        "tolerance": _NUMBER,
        "arch": _TEXT,
        "output": _WHOLE,
    },
    "knobs": {_ANY_NAME: _VALUES},
    "restrictions": {"where": _TEXTS},
    "when": {_ANY_NAME: _TEXT},
    "arguments": {
        "name": _TEXT,
        "type": _TEXT,
        "shape": _SHAPE,
        "value": _NUMBER,
        "fill": _TEXT,
        "output": _TRUTH,
    },
    "launch": {"grid": _SIZES, "block": _SIZES},
    "tuning": {
        "trials": _WHOLE,
        "seconds": _NUMBER,
        "goal_ms": _NUMBER,
        "build_timeout_s": _NUMBER,
        "run_timeout_s": _NUMBER,
        "search": _TEXT,
        "init": _TEXT,
        "presample": _TRUTH,
        "spare": _WHOLE,
    },
}
_LISTED = "arguments"


def require_described(data: Mapping[str, Any]) -> None:
    """Raise SpaceError for a section or key that nobody knows, and for a value of another kind."""
    for name, section in data.items():
        if name not in _SECTIONS:
            raise SpaceError(f"unknown section {name!r}; known: {', '.join(_SECTIONS)}")
        if name == _LISTED and not isinstance(section, list):
            raise SpaceError(f"each argument begins with [[{name}]]")
        for table in section if name == _LISTED else [section]:
            _require_section(name, table)


def _require_section(name: str, table: Any) -> None:
    if not isinstance(table, dict):
        raise SpaceError(f"[{name}] must be a section, got {table!r}")
    known = _SECTIONS[name]
    for key, value in table.items():
        kind = known.get(_ANY_NAME) or known.get(key)
        if kind is None:
            raise SpaceError(f"unknown key {key!r} in [{name}]; known: {', '.join(known)}")
        if not kind.fits(value):
            raise SpaceError(f"{key!r} in [{name}] must be {kind.words}, got {value!r}")
