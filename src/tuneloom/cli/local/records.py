"""`tuneloom export|import`: records for and from stock MetaSchedule."""

import argparse
from dataclasses import asdict
from pathlib import Path

from tuneloom.cli.parsing import Commands, add_command, add_run, tell
from tuneloom.errors import InputError

FORMAT = "metaschedule"
EXPORT = """\
Write the measured trials of a run as a stock MetaSchedule database: a folder with
database_workload.json and database_tuning_record.json.

  tuneloom export last --to metaschedule database/
"""
IMPORT = """\
Import a stock MetaSchedule database into the bank, where later runs find it. Unusable records
are skipped and counted by reason; nothing in a database is executed.

  tuneloom import database/
"""


def add_parser(subparsers: Commands) -> None:
    """Add the commands to the program."""
    export = add_command(subparsers, "export", EXPORT, export_run, store=True, json="print JSON")
    add_run(export)
    export.add_argument(
        "--to",
        nargs=2,
        required=True,
        metavar=("FORMAT", "DIR"),
        help=f"the format ({FORMAT}) and the output folder",
    )
    importing = add_command(subparsers, "import", IMPORT, import_folder, store=True, json="print JSON")
    importing.add_argument("folder", type=Path, metavar="DIR", help="the folder of the database")
    importing.add_argument(
        "--device",
        default="cpu",
        metavar="KEY",
        help="key of the device that its times were measured on (default: cpu)",
    )


def export_run(options: argparse.Namespace) -> int:
    """Write records for stock MetaSchedule."""
    from tuneloom.app.bank.exchange import export_records

    form, folder = options.to
    if form != FORMAT:
        raise InputError(f"no format {form!r}; known: {FORMAT!r}")
    count = export_records(options.run, Path(folder), options.store)
    return tell(options, {"records": count, "folder": folder}, f"{count} records written to {folder}")


def import_folder(options: argparse.Namespace) -> int:
    """Take records from stock MetaSchedule."""
    from tuneloom.app.bank.exchange import import_records

    summary = import_records(options.folder, options.device, options.store)
    skipped = [f"  skipped: {count} × {reason}" for reason, count in summary.skipped.items()]
    words = f"{summary.added} records of {summary.tasks} tasks imported as run {summary.run}"
    return tell(options, asdict(summary), words, *skipped)
