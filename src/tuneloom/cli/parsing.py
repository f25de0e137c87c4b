"""How commands are added to the program, what numbers they take, and how rows are printed."""

import argparse
import sys
from collections.abc import Callable, Collection, Mapping, Sequence
from json import dumps as to_json
from typing import Any, TypeAlias

from tuneloom.model.fields import COUNT, NATURAL, POSITIVE, SEED, NumberKind


def number(kind: NumberKind) -> Callable[[str], Any]:
    """What reads a number of this kind, and raises ArgumentTypeError for anything else."""

    def read(text: str) -> Any:
        try:
            value = int(text) if kind.whole else float(text)
        except ValueError:
            raise argparse.ArgumentTypeError(f"must be {kind.words}, got {text!r}") from None
        if not kind.fits(value):
            raise argparse.ArgumentTypeError(f"must be {kind.words_for(value)}, got {text!r}")
        return value

    return read


count, natural, seed, positive = number(COUNT), number(NATURAL), number(SEED), number(POSITIVE)


Commands: TypeAlias = "argparse._SubParsersAction[argparse.ArgumentParser]"
"""The commands of the program, or of a group."""

Command = Callable[[argparse.Namespace], int]
"""What carries a command out; returns the exit code."""


def add_command(
    commands: Commands,
    name: str,
    text: str,
    function: Command | None = None,
    *,
    help: str = "",
    store: bool = False,
    json: str = "",
) -> argparse.ArgumentParser:
    """Add a command that calls a function, or a group without one; `text` describes it.

    `help` is its line in the list of a group; the program itself has its list from `GROUPS`. With
    `store` it has the option --store, and --json if `json` says what that prints.
    """
    written = argparse.RawDescriptionHelpFormatter if "\n" in text else argparse.HelpFormatter
    parser = commands.add_parser(name, help=help, description=text, formatter_class=written)
    if store:
        parser.add_argument("--store", help="path or URL of the store (default: store.db in TUNELOOM_HOME)")
    if json:
        parser.add_argument("--json", action="store_true", help=json)
    if function is not None:
        parser.set_defaults(func=function)
    return parser


def tell(options: argparse.Namespace, data: Any, *words: str, indent: int | None = None) -> int:
    """Print data for programs, or lines for people; the exit code is that of success."""
    for line in (to_json(data, indent=indent),) if options.json else words:
        print(line)
    return 0


def add_run(parser: argparse.ArgumentParser, *, usually_last: bool = False) -> None:
    """Add the run that a command is about."""
    words = "name of the run, a prefix of it, or `last`"
    if usually_last:
        parser.add_argument("run", nargs="?", default="last", metavar="RUN", help=f"{words} (default)")
    else:
        parser.add_argument("run", metavar="RUN", help=words)


def add_device_cores(parser: argparse.ArgumentParser) -> None:
    """Add the number of cores that a device is made of."""
    words = "number of cores to measure on (default: 1)"
    parser.add_argument("--device-cores", type=count, default=1, metavar="N", help=words)


def add_insecure(parser: argparse.ArgumentParser) -> None:
    """Add the wish to use a cluster that lets anybody in."""
    words = "use a Ray cluster even if it runs code for anyone who can reach it"
    parser.add_argument("--insecure", action="store_true", help=words)


def add_quiet(parser: argparse.ArgumentParser) -> None:
    """Add the wish for no live view."""
    parser.add_argument("--quiet", action="store_true", help="do not show progress")


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
