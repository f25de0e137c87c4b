"""What is written about the fields of jobs: the table in docs/jobs.md, and types of options in Python.

`python -m tuneloom.app.requests.describing` brings both up to date.
"""

from collections.abc import Sequence
from pathlib import Path

from tuneloom.app.requests.schema import job_fields
from tuneloom.model import JOB_FIELDS, JobField
from tuneloom.model.fields import SHAPES, YES_OR_NO, Choice, NumberKind

BEGIN, END = "<!-- fields of jobs: begin -->\n", "<!-- fields of jobs: end -->\n"
_HEAD = "| key | value | default | meaning |\n| --- | --- | --- | --- |\n"
_OPTIONS = '''"""Options of jobs in Python; made by `python -m tuneloom.app.requests.describing`."""

from collections.abc import Mapping, Sequence
from typing import Literal, TypedDict


class JobOptions(TypedDict, total=False):
    """The fields of jobs; a kind of job may have more."""

'''


def table(fields: Sequence[JobField]) -> str:
    """The fields as a table of the docs."""
    return _HEAD + "".join(_row(field) for field in fields)


def _row(field: JobField) -> str:
    where = f"{' and '.join(field.kinds)} jobs only" if field.kinds else ""
    meaning = "; ".join(filter(None, (field.help, field.more, where)))
    usually = {"model": "required"}.get(
        field.name, field.usually or ("false" if field.kind is YES_OR_NO else "")
    )
    return f"| `{field.name}` | {field.kind.words} | {usually} | {meaning} |\n"


def with_table(page: str, fields: Sequence[JobField]) -> str:
    """A page with this table between its marks."""
    before, _, rest = page.partition(BEGIN)
    return before + BEGIN + table(fields) + END + rest.partition(END)[2]


def options_source(fields: Sequence[JobField]) -> str:
    """The module with the types of options; the model is an argument of its own everywhere."""
    return _OPTIONS + "".join(_option(field) for field in fields if field.name != "model")


def _option(field: JobField) -> str:
    return f'    {field.name}: {_type(field)}\n    """{field.help[0].upper()}{field.help[1:]}."""\n'


def _type(field: JobField) -> str:
    kind = field.kind
    if isinstance(kind, NumberKind):
        return "int" if kind.whole else "float"
    if isinstance(kind, Choice):
        names = ", ".join(f'"{name}"' for name in kind.names)
        return f"Literal[{names}]"
    if kind is SHAPES:
        return "Mapping[str, Sequence[int | str] | Sequence[Sequence[int | str]]]"
    return "bool" if kind is YES_OR_NO else "str"


if __name__ == "__main__":
    page, options = Path("docs/jobs.md"), Path("src/tuneloom/model/options.py")
    page.write_text(with_table(page.read_text(), job_fields()))
    options.write_text(options_source(JOB_FIELDS))
