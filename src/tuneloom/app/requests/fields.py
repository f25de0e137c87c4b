"""What may be said of a job, field by field: the same checks for command lines, files and requests.

Checks are functions of plain data. Each complaint names its field.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any

from tuneloom.errors import InputError
from tuneloom.model import DTYPES, REUSE
from tuneloom.model.numbers import COUNT, NOT_NEGATIVE, POSITIVE, SEED, WHOLE, NumberKind


@dataclass(frozen=True, slots=True, kw_only=True)
class Words:
    """What a value has to be, in words and as a test."""

    words: str
    fits: Callable[[Any], bool]

    def words_for(self, _value: Any) -> str:
        """What a value that does not fit should have been."""
        return self.words


FieldType = Words | NumberKind


@dataclass(frozen=True, slots=True, kw_only=True)
class Complaint:
    """What is wrong with one field."""

    field: str
    message: str


def _is_shape(value: Any) -> bool:
    return isinstance(value, list | tuple) and bool(value) and all(COUNT.fits(size) for size in value)


def _is_shapes(value: Any) -> bool:
    """One shape, or a list of them."""
    several = isinstance(value, list | tuple) and bool(value) and all(_is_shape(one) for one in value)
    return several or _is_shape(value)


def _is_text(value: Any) -> bool:
    return isinstance(value, str) and bool(value) and "\x00" not in value


TEXT = Words(words="text", fits=_is_text)
YES_OR_NO = Words(words="true or false", fits=lambda value: isinstance(value, bool))
SHAPES = Words(
    words="a table of lists, as in { input = [1, 3, 224, 224] }",
    fits=lambda value: isinstance(value, dict) and all(_is_shapes(shape) for shape in value.values()),
)


def one_of(names: Sequence[str]) -> Words:
    """One of a few words."""
    return Words(words=f"one of {', '.join(names)}", fits=lambda value: value in names)


SHARED: Mapping[str, FieldType] = {
    "tuner": TEXT,
    "target": TEXT,
    "device": TEXT,
    "trials": COUNT,
    "seconds": POSITIVE,
    "goal_ms": POSITIVE,
    "goal_ratio": POSITIVE,
    "priority": WHOLE,
    "deadline_s": POSITIVE,
    "arrival_s": NOT_NEGATIVE,
    "batch": COUNT,
    "seed": SEED,
    "shapes": SHAPES,
    "pad": YES_OR_NO,
    "run_timeout_s": POSITIVE,
    "build_timeout_s": POSITIVE,
    "waits_for_devices": YES_OR_NO,
    "layout": TEXT,
    "only_tvm": YES_OR_NO,
    "dtype": one_of(DTYPES),
    "samples": TEXT,
    "tolerance": POSITIVE,
    "reuse": one_of(REUSE),
}
"""What several jobs may have in common."""

OWN: Mapping[str, FieldType] = {"name": TEXT, "model": TEXT, "out": TEXT}
"""What only one job may say."""

JOB: Mapping[str, FieldType] = {**OWN, **SHARED}


def complaints(values: Mapping[str, Any], known: Mapping[str, FieldType] = JOB) -> list[Complaint]:
    """Everything that is wrong with these values, in their order; fields that are None count as not given."""
    found = []
    for field, value in values.items():
        if field not in known:
            found.append(Complaint(field=field, message=f"unknown key {field!r}; {nearest(field, known)}"))
        elif value is not None and not known[field].fits(value):
            message = f"{field!r} must be {known[field].words_for(value)}, got {shown(value)}"
            found.append(Complaint(field=field, message=message))
    return found


def require_fields(values: Mapping[str, Any], known: Mapping[str, FieldType] = JOB) -> None:
    """Raise InputError for the first value that is wrong, with its field."""
    for complaint in complaints(values, known):
        raise InputError(complaint.message, field=complaint.field)


def nearest(key: str, known: Iterable[str]) -> str:
    """What may have been meant."""
    names = list(known)
    close = get_close_matches(key, names, 1, 0.6)
    return f"did you mean {close[0]!r}?" if close else f"known: {', '.join(names)}"


def shown(value: Any) -> str:
    """A value as TOML writes it, cut short."""
    text = str(value).lower() if isinstance(value, bool) else repr(value)
    return text if len(text) <= 60 else f"{text[:57]}…"
