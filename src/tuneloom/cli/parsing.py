"""How commands are added to the program."""

import argparse
from collections.abc import Callable
from typing import TypeAlias

from tuneloom.cli.numbers import count

Commands: TypeAlias = "argparse._SubParsersAction[argparse.ArgumentParser]"
"""The commands of the program, or of a group."""


def add_command(
    commands: Commands,
    name: str,
    text: str,
    function: Callable[[argparse.Namespace], int] | None = None,
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
