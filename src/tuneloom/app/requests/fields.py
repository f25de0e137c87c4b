"""Checks of what is said of a job, field by field: the same for command lines, files and requests.

Each complaint names its field.
"""

from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from typing import Any

from tuneloom.errors import InputError
from tuneloom.model.fields import FieldType, JobField


def kinds_of(fields: Iterable[JobField]) -> dict[str, FieldType]:
    """What each field has to be, by name."""
    return {field.name: field.kind for field in fields}


def require_fields(values: Mapping[str, Any], known: Mapping[str, FieldType]) -> None:
    """Raise InputError for the first value that is wrong, with its field; None counts as not given."""
    for field, value in values.items():
        if field not in known:
            raise InputError(f"unknown key {field!r}; {nearest(field, known)}", field=field)
        if value is not None and not known[field].fits(value):
            words = known[field].words_for(value)
            raise InputError(f"{field!r} must be {words}, got {shown(value)}", field=field)


def nearest(key: str, known: Iterable[str]) -> str:
    """What may have been meant."""
    names = list(known)
    close = get_close_matches(key, names, 1, 0.6)
    return f"did you mean {close[0]!r}?" if close else f"known: {', '.join(names)}"


def shown(value: Any) -> str:
    """A value as TOML writes it, cut short."""
    text = str(value).lower() if isinstance(value, bool) else repr(value)
    return text if len(text) <= 60 else f"{text[:57]}…"
