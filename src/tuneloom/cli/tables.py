"""Rows for people and for programs: a table on a terminal, lines with tabs otherwise."""

import sys
from collections.abc import Collection, Mapping, Sequence


def print_rows(
    columns: Sequence[str],
    rows: Sequence[Sequence[str]],
    *,
    numbers: Collection[str] = (),
    styles: Mapping[str, str] | None = None,
) -> None:
    """Print rows; `numbers` are columns aligned to the right, `styles` colours for certain words."""
    if not sys.stdout.isatty():
        for row in rows:
            print("\t".join(row))
        return
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, header_style="dim", pad_edge=False)
    for column in columns:
        table.add_column(column, justify="right" if column in numbers else "left", overflow="fold")
    for row in rows:
        table.add_row(*(Text(cell, style=(styles or {}).get(cell, "")) for cell in row))
    Console().print(table)
