"""What a section of the page of benchmarks is, and tables of any results."""

import json
import subprocess
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

HERE = Path(__file__).parents[1]
Rows = Sequence[Mapping[str, Any]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    """One results file on the page: what was asked, how to measure it, and how to draw it."""

    results: str
    title: str
    about: str
    command: str
    draw: Callable[[Any], str]


def table(columns: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """A Markdown table."""
    lines = [columns, ["---"] * len(columns), *rows]
    return "\n".join("| " + " | ".join(map(str, line)) + " |" for line in lines)


def number(value: object, digits: int = 4) -> str:
    """A number as short as it can be told."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return str(value)
    return f"{value:,}" if isinstance(value, int) else f"{value:.{digits}g}"


def flat(rows: Rows) -> str:
    """Rows of plain values as they are."""
    columns = [key for key, value in rows[0].items() if not isinstance(value, (list, dict))]
    return table(columns, [[number(row.get(column, "–")) for column in columns] for row in rows])


def as_it_is(data: Any) -> str:
    """Results of any form: tables of rows, lists of values."""
    if isinstance(data, list) and data and all(isinstance(row, dict) for row in data):
        return flat(data)
    if isinstance(data, dict):
        plain = {k: v for k, v in data.items() if not isinstance(v, (list, dict))}
        parts = [table(("what", "value"), [(k, number(v)) for k, v in plain.items()])] if plain else []
        nested = [(k, v) for k, v in data.items() if isinstance(v, (list, dict)) and v]
        return "\n\n".join([*parts, *(f"**{k}**\n\n{as_it_is(v)}" for k, v in nested)])
    return "```\n" + json.dumps(data) + "\n```"


def drawn_by(script: str, *words: str) -> Callable[[Any], str]:
    """The table that a benchmark draws of its own results."""

    def draw(_data: Any) -> str:
        command = [sys.executable, str(HERE / script), *words]
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()

    return draw


def each_alone(rows: Rows) -> str:
    """Rows that have different columns: a table for each."""
    return "\n\n".join(flat([row]) for row in rows)


def one_row(data: Mapping[str, Any]) -> str:
    """One measurement: a line for each figure."""
    return table(
        ("figure", "value"), ((name.replace("_", " "), figure(value)) for name, value in data.items())
    )


def figure(value: object) -> object:
    """A value that may have names for its parts."""
    if isinstance(value, Mapping):
        return ", ".join(f"{name} {number(each)}" for name, each in value.items())
    return number(value)
