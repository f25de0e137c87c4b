"""`tuneloom farm check` and `tuneloom farm status`: what a farm has, and what it does."""

import argparse
import json
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from tuneloom.cli.parsing import Commands, add_command, add_insecure, add_run, print_rows
from tuneloom.errors import FarmError

if TYPE_CHECKING:
    from tuneloom.app.farm.checking import CheckedResource

DESCRIPTION = """\
Inspect a farm: machines and devices that are listed in a file and used together.

  tuneloom farm check farm.toml      test everything in it
  tuneloom farm status               show what the resources of a run are doing
"""
CHECK = (
    "Test everything in a farm file: whether machines and devices answer, what they are, which versions "
    "they have, how far their clocks are off, and how long a fixed kernel takes."
)
STATUS = "Show what each machine and device of a run is doing, and how many stages wait for it."
CHECKED = ("machine", "resource", "key", "what it is", "versions", "clock", "canary", "state")
SHOWN = ("machine", "resource", "key", "slots", "busy", "queue", "state")
_NUMBERS = frozenset({"clock", "canary", "slots", "busy", "queue"})


def add_parser(subparsers: Commands) -> None:
    """Add the commands to the program."""
    parser = add_command(subparsers, "farm", DESCRIPTION)
    parts = parser.add_subparsers(dest="part", metavar="COMMAND", required=True)
    check = add_command(
        parts, "check", CHECK, run_check, help="try everything in a farm file", json="print a JSON list"
    )
    check.add_argument("file", type=Path, metavar="FARM.toml", help="the farm file")
    add_insecure(check)
    words = "show what the resources of a run are doing"
    status = add_command(
        parts, "status", STATUS, run_status, help=words, store=True, json="print a JSON list"
    )
    add_run(status, usually_last=True)


def run_check(options: argparse.Namespace) -> int:
    """Print a row for everything; raises FarmError if something can't be used."""
    from tuneloom.app.farm.checking import check_farm
    from tuneloom.app.farm.reading import read_farm

    found = check_farm(read_farm(options.file), insecure=options.insecure)
    if options.json:
        print(json.dumps([asdict(each) for each in found], indent=2))
    else:
        print_rows(
            CHECKED, [_checked_cells(each) for each in found], numbers=_NUMBERS, styles={"ok": "green"}
        )
    wrong = [each for each in found if not each.well]
    if wrong:
        first = wrong[0]
        more = f" ({len(wrong) - 1} more in the table)" if len(wrong) > 1 else ""
        raise FarmError(f"{first.name} can't be used: {first.state}{more}")
    return 0


def run_status(options: argparse.Namespace) -> int:
    """Print a row for every resource of a run, with why it is away if it is."""
    from tuneloom.app.farm.checking import farm_status

    rows = farm_status(options.run, options.store)
    if options.json:
        print(json.dumps([asdict(row) for row in rows], indent=2))
        return 0
    cells = [
        (row.machine, row.name, row.key, str(row.slots), f"{row.utilisation:.0%}", str(row.queue), row.state)
        for row in rows
    ]
    print_rows(SHOWN, cells, numbers=_NUMBERS)
    return 0


def _checked_cells(each: "CheckedResource") -> tuple[str, ...]:
    clock = "" if each.clock_offset_s is None else f"{each.clock_offset_s * 1e3:+.0f} ms"
    canary = "" if each.canary_s is None else f"{each.canary_s * 1e6:.1f} µs"
    return (each.machine, each.name, each.key, each.about, each.versions, clock, canary, each.state)
