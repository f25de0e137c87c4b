"""`tuneloom report`: a run as one self-contained page."""

import argparse
from pathlib import Path

from tuneloom.cli.parsing import Commands, add_command, add_run, tell

DESCRIPTION = """\
Write an HTML report about a run: which stage used which resource when, how busy the
resources were, tuning curves, failures, and the time of every kernel before and after.
The report is a single file that works offline in any browser.

    tuneloom report                           the newest run, to report.html
    tuneloom report amber-heron-42 -o x.html  one run, to a file of your choice
"""


def add_parser(subparsers: Commands) -> None:
    """Add the command to the program."""
    parser = add_command(
        subparsers, "report", DESCRIPTION, report, store=True, json="print the report's path as JSON"
    )
    add_run(parser, usually_last=True)
    parser.add_argument(
        "-o",
        "--out",
        type=Path,
        default=Path("report.html"),
        metavar="FILE",
        help="output file (default: report.html)",
    )


def report(options: argparse.Namespace) -> int:
    """Write the page and say where it is."""
    from tuneloom.app.reports.reporting import write_report

    run = write_report(options.run, options.out, options.store)
    told = {"run": run, "page": str(options.out)}
    return tell(options, told, f"report on {run} written to {options.out}")
