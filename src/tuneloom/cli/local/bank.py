"""`tuneloom bank`: the records of all runs, as donors for later ones."""

import argparse
import json
from dataclasses import asdict
from pathlib import Path

from tuneloom.app.bank.files import export_bank, import_bank
from tuneloom.app.bank.looking import bank_class, bank_stats, prune
from tuneloom.cli.parsing import Command, Commands, add_command, count, print_rows, tell
from tuneloom.model.space import TVM

DESCRIPTION = """\
The bank holds the records of all runs; later runs start from them.

  tuneloom bank stats                 number of records, by kernel class
  tuneloom bank show conv2d_add_relu  the best record of each kernel of a class
  tuneloom bank export bank.jsonl     write records to a file, for `bank import` elsewhere
  tuneloom bank prune --keep 50       delete all but the fastest 50 records of each kernel

`tuneloom import DIR` imports stock MetaSchedule databases.
"""


def add_parser(subparsers: Commands) -> None:
    """Add the commands to the program."""
    parser = add_command(subparsers, "bank", DESCRIPTION)
    commands = parser.add_subparsers(metavar="COMMAND", required=True)
    _command(commands, "stats", "show the number of records, by kernel class", show_stats)
    show = _command(commands, "show", "show the best record of each kernel of a class", show_class)
    show.add_argument("kernel_class", metavar="CLASS", help="a kernel class, as `bank stats` lists them")
    pruning = _command(commands, "prune", "delete all but the fastest records of each kernel", prune_bank)
    pruning.add_argument(
        "--keep", type=count, required=True, metavar="N", help="number of records to keep per kernel"
    )
    export = _command(commands, "export", "write the measured records to a file", export_to)
    export.add_argument("path", type=Path, metavar="FILE", help="output file")
    export.add_argument("--family", help="only records of this target family")
    importing = _command(commands, "import", "import records that `bank export` wrote", import_from)
    importing.add_argument("path", type=Path, metavar="FILE", help="a file that `bank export` wrote")


def _command(commands: Commands, name: str, words: str, function: Command) -> argparse.ArgumentParser:
    told = words.capitalize() + "."
    return add_command(commands, name, told, function, help=words, store=True, json="print JSON")


def show_stats(options: argparse.Namespace) -> int:
    """Print how much is known."""
    rows = bank_stats(options.store)
    if options.json:
        print(json.dumps([asdict(row) for row in rows], indent=2))
    elif not rows:
        print("the bank is empty; `tuneloom tune MODEL` fills it")
    else:
        cells = [(r.kernel_class, r.family, str(r.workloads), str(r.measured), str(r.failed)) for r in rows]
        counts = ("kernels", "records", "failed")
        print_rows(("kernel class", "family", *counts), cells, numbers=counts)
    return 0


def show_class(options: argparse.Namespace) -> int:
    """Print the best record of every workload of a class."""
    found = bank_class(options.kernel_class, options.store)
    if options.json:
        print(json.dumps([asdict(known) for known in found], indent=2))
        return 0
    cells = [
        (
            k.name,
            k.shapes,
            f"{k.best_s * 1e3:.3f}",
            f"{k.gflops:.1f}",
            k.device_key,
            f"record {k.record}, {k.job}" + (f", code by {k.implementer}" if k.implementer != TVM else ""),
        )
        for k in found
    ]
    columns = ("kernel", "shapes", "ms", "GFLOP/s", "device", "from")
    print_rows(columns, cells, numbers=("ms", "GFLOP/s"))
    return 0


def prune_bank(options: argparse.Namespace) -> int:
    """Drop records."""
    dropped = prune(options.keep, options.store)
    return tell(options, {"dropped": dropped}, f"{dropped} records deleted")


def export_to(options: argparse.Namespace) -> int:
    """Write a bank."""
    written = export_bank(options.path, options.store, options.family)
    told = {"records": written, "file": str(options.path)}
    return tell(options, told, f"{written} records written to {options.path}")


def import_from(options: argparse.Namespace) -> int:
    """Read a bank."""
    done = import_bank(options.path, options.store)
    skipped = [f"  skipped: {count} × {reason}" for reason, count in done.skipped.items()]
    words = f"{done.added} records of {done.workloads} kernels imported as run {done.run}"
    return tell(options, asdict(done), words, *skipped)
