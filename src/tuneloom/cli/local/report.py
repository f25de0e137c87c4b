"""`tuneloom report`: a run as one self-contained page."""

import argparse
import json
from pathlib import Path

DESCRIPTION = """\
Write an HTML report about a run: which stage used which resource when, how busy the
resources were, tuning curves, failures, and the time of every kernel before and after.
The report is a single file that works offline in any browser.

    tuneloom report                           the newest run, to report.html
    tuneloom report amber-heron-42 -o x.html  one run, to a file of your choice
"""


def add_parser(subparsers: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add the command to the program."""
    parser = subparsers.add_parser(
        "report",
        help="write an HTML report about a run",
        description=DESCRIPTION,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "run",
        nargs="?",
        default="last",
        metavar="RUN",
        help="name of the run, a prefix of it, or `last` (default)",
    )
    parser.add_argument(
        "-o",
        "--out",
        type=Path,
        default=Path("report.html"),
        metavar="FILE",
        help="output file (default: report.html)",
    )
    parser.add_argument("--store", help="path or URL of the store (default: store.db in TUNELOOM_HOME)")
    parser.add_argument("--json", action="store_true", help="print the report's path as JSON")
    parser.set_defaults(func=report)


def report(options: argparse.Namespace) -> int:
    """Write the page and say where it is."""
    from tuneloom.app.reports.reporting import write_report

    run = write_report(options.run, options.out, options.store)
    if options.json:
        print(json.dumps({"run": run, "page": str(options.out)}))
    else:
        print(f"report on {run} written to {options.out}")
    return 0
