"""All fields that jobs may have here, and checks of what is said of a job, field by field.

The fields are those of any job and those that kinds of jobs bring. Imports no kind of ours, which would
take seconds: what these bring is listed. Each complaint names its field.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from difflib import get_close_matches
from importlib.metadata import EntryPoint
from typing import Any

from tuneloom.app.kinds.registering import KINDS, registered
from tuneloom.errors import InputError
from tuneloom.model.fields import FieldType, JobField, PathKind
from tuneloom.model.job import JOB_FIELDS
from tuneloom.tuners.kernel import KERNEL_FIELDS


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


RESERVED = frozenset(
    [
        "--help",
        "--jobs",
        "--from-log",
        "--name",
        "--key",
        "--policy",
        "--device-cores",
        "--farm",
        "--insecure",
        "--detach",
        "--store",
        "--server",
        "--json",
        "--quiet",
    ]
)
"""Options of commands that make jobs which are not about the jobs."""
_OURS: dict[str, Sequence[JobField]] = {"kernel": KERNEL_FIELDS}


def job_fields() -> tuple[JobField, ...]:
    """Every field that a job of some kind may have; each name and each option is there once."""
    found = {field.name: field for field in JOB_FIELDS}
    for point in registered(KINDS):
        for field in kind_fields(point.name, _brought(point)):
            known = found.get(field.name, field)
            if same(known, field) and not _taken(field, found.values()):
                found[field.name] = replace(field, kinds=tuple(dict.fromkeys((*known.kinds, point.name))))
    return tuple(found.values())


def kind_fields(kind: str, fields: Sequence[JobField]) -> list[JobField]:
    """The fields that a kind brings, as its jobs have them."""
    return [replace(field, kinds=(kind,), attribute=field.name) for field in fields]


def same(one: JobField, other: JobField) -> bool:
    """Whether two fields differ in nothing but the kinds they are for."""
    return replace(one, kinds=()) == replace(other, kinds=())


def _taken(field: JobField, others: Iterable[JobField]) -> bool:
    taken = {*RESERVED, *(other.option for other in others if other.option and other.name != field.name)}
    return field.option in taken


def _brought(point: EntryPoint) -> Sequence[JobField]:
    """What a kind brings; nothing if it can't be imported, which is told when it is used."""
    if point.module.partition(".")[0] == __name__.partition(".")[0]:
        return _OURS.get(point.name, ())
    try:
        fields: Sequence[JobField] = point.load().fields
    except Exception:
        return ()
    return fields


def fields_for(kind: str, brought: Sequence[JobField]) -> dict[str, JobField]:
    """The fields of jobs of one kind, by name; raises InputError if it brings one that can't be used."""
    known = {field.name: field for field in job_fields()}
    for field in kind_fields(kind, brought):
        if field.name not in known or kind not in known[field.name].kinds:
            raise InputError(
                f"the field {field.name!r} of {kind!r} jobs has a name or an option that is taken; "
                "ask the author of that package to choose another"
            )
    return {name: field for name, field in known.items() if not field.kinds or kind in field.kinds}


def uploads() -> dict[str, str]:
    """The fields whose values are uploaded files where jobs are submitted over HTTP, with their endings."""
    fields = (field for field in job_fields() if field.remote)
    return {field.name: field.kind.ending for field in fields if isinstance(field.kind, PathKind)}
