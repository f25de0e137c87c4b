"""What can be said of a job on the command line, made from the fields of jobs."""

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tuneloom.app.requests.schema import job_fields
from tuneloom.cli.parsing import number
from tuneloom.errors import InputError
from tuneloom.model.fields import COUNT, SHAPES, YES_OR_NO, Choice, JobField, NumberKind, PathKind
from tuneloom.model.sizes import range_in

_SEVERAL_SHAPES = "; may be repeated; 1|8,3,224,224 stands for two shapes"
_ONE_EACH = "; repeat it for one job per device"


def add_job_options(parser: argparse.ArgumentParser, fields: Sequence[JobField] = ()) -> None:
    """Add options for these fields, or for all that jobs have; those of one kind in a group of their own."""
    groups: dict[tuple[str, ...], Any] = {(): parser}
    for field in fields or job_fields():
        if field.kinds not in groups and field.option:
            groups[field.kinds] = parser.add_argument_group(f"options of {' and '.join(field.kinds)} jobs")
        if field.option:
            groups[field.kinds].add_argument(
                field.option, dest=field.name, default=None, help=_help(field), **_reading(field)
            )


def remote_fields() -> list[JobField]:
    """What can be said of a job of a server; its bundle is fetched into a folder of this machine."""
    return [field for field in job_fields() if field.remote or field.name == "out"]


def fields_named(*names: str) -> list[JobField]:
    """Some of the fields, in this order."""
    known = {field.name: field for field in job_fields()}
    return [known[name] for name in names]


def job_values(options: argparse.Namespace) -> dict[str, Any]:
    """What the command line says of all its jobs, under the names that job files use."""
    given = vars(options)
    said = (field for field in job_fields() if field.shared and given.get(field.name) not in (None, []))
    return {field.name: _value(field, given[field.name]) for field in said}


def _value(field: JobField, given: Any) -> Any:
    if field.kind is SHAPES:
        return shapes_of(given)
    if isinstance(field.kind, PathKind):
        return str(Path(given).absolute())
    return given[0] if field.for_each else given


def _help(field: JobField) -> str:
    several = _SEVERAL_SHAPES if field.kind is SHAPES else _ONE_EACH if field.for_each else ""
    usually = f" (default: {field.usually})" if field.usually else ""
    return f"{field.help}{several}{usually}".replace("%", "%%")


def _reading(field: JobField) -> dict[str, Any]:
    """How argparse reads a value."""
    if field.kind is YES_OR_NO:
        return {"action": argparse.BooleanOptionalAction if field.default else "store_true"}
    if isinstance(field.kind, Choice):
        return {"choices": field.kind.names}
    if field.kind is SHAPES or field.for_each:
        return {"action": "append", "metavar": field.metavar}
    if isinstance(field.kind, NumberKind):
        return {"type": number(field.kind), "metavar": field.metavar}
    return {"metavar": field.metavar}


def shapes_of(texts: Sequence[str] | None) -> dict[str, list[tuple[int | str, ...]]]:
    """`name=1,3,224,224` as data, all shapes of an input in a list; raises InputError for anything else.

    `name=1|8,3,224,224` stands for two shapes; where several sizes have alternatives, the nth of
    each belong together. A size may also be a range, as in `name=1..64,3,224,224`.
    """
    shapes: dict[str, list[tuple[int | str, ...]]] = {}
    for text in texts or ():
        name, separator, numbers = text.rpartition("=")
        found = _alternatives(numbers)
        if not separator or not found:
            raise InputError(
                f"can't read --shape {text!r}; write it as name=1,3,224,224, name=1|8,3,224,224 or "
                "name=1..64,3,224,224"
            )
        shapes.setdefault(name, []).extend(found)
    return shapes


def _alternatives(text: str) -> list[tuple[int | str, ...]]:
    """The shapes that a text stands for; none if it can't be read."""
    try:
        sizes = [list(map(_size, part.split("|"))) for part in text.split(",")]
    except ValueError:
        return []
    count = max(map(len, sizes))
    if any(len(size) not in (1, count) for size in sizes):
        return []
    return [tuple(size[n % len(size)] for size in sizes) for n in range(count)]


def _size(text: str) -> int | str:
    """A size, or a range of sizes as it was written; raises ValueError for anything else."""
    if range_in(text) is not None:
        return text
    size = int(text)
    if not COUNT.fits(size):
        raise ValueError(text)
    return size
