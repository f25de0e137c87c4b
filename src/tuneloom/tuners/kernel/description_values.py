"""What may stand in a kernel's file: the sections, their keys, and what each value has to be."""

from collections.abc import Callable, Mapping
from math import inf
from typing import Any

from tuneloom.errors import SpaceError
from tuneloom.model.fields import COUNT, NATURAL, NOT_NEGATIVE, POSITIVE, FieldType, Words


def _is_finite(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < inf


def _is_text(value: Any) -> bool:
    return isinstance(value, str) and bool(value)


def _list_of(fits: Callable[[Any], bool]) -> Callable[[Any], bool]:
    return lambda value: isinstance(value, list) and all(fits(each) for each in value)


_TEXT = Words(words="text", fits=_is_text)
_TEXTS = Words(words="a list of texts", fits=_list_of(_is_text))
_NUMBER = Words(words="a finite number", fits=_is_finite)
_SHAPE = Words(words="a list of whole numbers of at least 1", fits=_list_of(COUNT.fits))
_VALUES = Words(words="a list of values", fits=lambda value: isinstance(value, list))
_TRUTH = Words(words="true or false", fits=lambda value: isinstance(value, bool))
_SIZES = Words(
    words="a list of one to three expressions over the knobs",
    fits=lambda value: isinstance(value, list) and 1 <= len(value) <= 3,
)
_ANY_NAME = ""
_SECTIONS: Mapping[str, Mapping[str, FieldType]] = {
    "kernel": {
        "name": _TEXT,
        "language": _TEXT,
        "source": _TEXT,
        "entry": _TEXT,
        "reference": _TEXT,
        "flags": _TEXTS,
        "tolerance": NOT_NEGATIVE,
        "arch": _TEXT,
        "output": NATURAL,
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
        "trials": COUNT,
        "seconds": POSITIVE,
        "goal_ms": POSITIVE,
        "build_timeout_s": POSITIVE,
        "run_timeout_s": POSITIVE,
        "search": _TEXT,
        "init": _TEXT,
        "presample": _TRUTH,
        "spare": NATURAL,
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
            raise SpaceError(f"{key!r} in [{name}] must be {kind.words_for(value)}, got {value!r}")
