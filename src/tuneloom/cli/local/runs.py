"""`tuneloom runs`: what was run here, and how it ended."""

import argparse
import json
from dataclasses import asdict
from datetime import datetime
from typing import TYPE_CHECKING

from tuneloom.cli.parsing import Commands, add_command, count, print_rows

if TYPE_CHECKING:
    from tuneloom.store import RunRecord

COLUMNS = ("run", "state", "started", "took", "jobs", "trials", "command")
NUMBERS = frozenset({"took", "jobs", "trials"})
STYLES = {"running": "cyan", "finished": "green", "interrupted": "yellow", "failed": "red"}

DESCRIPTION = """\
List the runs in the store, newest first. A run whose process has gone away is shown as
interrupted; `tuneloom resume RUN` continues it, `tuneloom report RUN` shows what it did.
"""


def add_parser(subparsers: Commands) -> None:
    """Add the command to the program."""
    parser = add_command(subparsers, "runs", DESCRIPTION, list_runs, store=True, json="print a JSON list")
    parser.add_argument("--limit", type=count, metavar="N", help="show only the newest N runs")


def list_runs(options: argparse.Namespace) -> int:
    """Print the runs as JSON, as a table on a terminal, or as lines with tabs."""
    from tuneloom.app.reports.reporting import known_runs

    runs = known_runs(options.store, options.limit)
    if options.json:
        print(json.dumps([asdict(run) for run in runs], indent=2))
    elif not runs:
        print("no runs yet; `tuneloom tune MODEL` starts one")
    else:
        print_rows(COLUMNS, [_cells(run) for run in runs], numbers=NUMBERS, styles=STYLES)
    return 0


def _cells(run: "RunRecord") -> list[str]:
    return [
        run.id,
        run.status.value,
        datetime.fromtimestamp(run.created).astimezone().strftime("%Y-%m-%d %H:%M"),
        _took(run),
        str(run.jobs),
        str(run.trials),
        " ".join(run.command.split()),
    ]


def _took(run: "RunRecord") -> str:
    if run.ended is None:
        return "–"
    minutes, seconds = divmod(round(run.ended - run.created), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{seconds:02d}"
