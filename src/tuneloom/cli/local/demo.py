"""`tuneloom demo`: tune a network that comes with the package, then say what to look at."""

import argparse
from pathlib import Path

from tuneloom.cli.parsing import Commands, add_command

MODEL = "zoo:squeezenet"
DESCRIPTION = f"""\
Tune {MODEL}, print its latency before and after tuning and in ONNX Runtime if that is installed,
and write a bundle and a report. The network's weights are random; nothing is downloaded.
"""


def add_parser(subparsers: Commands) -> None:
    """Add the command to the program."""
    parser = add_command(subparsers, "demo", DESCRIPTION, run_demo)
    parser.add_argument("--trials", default="300", metavar="N", help="number of trials (default: 300)")
    parser.add_argument(
        "--out", default="demo-bundle", metavar="DIR", help="folder for the bundle (default: demo-bundle)"
    )


def run_demo(options: argparse.Namespace) -> int:
    """Call the commands that a user would, and print them."""
    from tuneloom.cli.main import main

    page = str(Path(options.out).with_suffix(".html"))
    for words in (
        ["tune", MODEL, "--trials", options.trials, "--out", options.out],
        ["report", "last", "-o", page],
    ):
        print("$ tuneloom", *words, flush=True)
        code = main(words)
        if code:
            return code
    print(f"Try next: tuneloom evaluate {options.out}")
    return 0
