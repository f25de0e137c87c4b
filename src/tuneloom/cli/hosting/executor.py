"""`tuneloom executor`: carry out what others submitted to a store."""

import argparse
import os
import signal
import sys
import threading

from tuneloom.cli.local.tune import add_farm_options, run_settings
from tuneloom.cli.parsing import Commands, add_command

DESCRIPTION = """\
Execute the runs that wait in a store, and those whose executors have died. Several executors, on
one machine or on many, can work on one store: each run has one executor at a time.

  tuneloom tune zoo:squeezenet --detach --store postgresql://tuning@db/tuneloom
  tuneloom executor --store postgresql://tuning@db/tuneloom

SIGTERM or Ctrl-C lets running stages finish and releases the runs, so that another executor can
continue them. A crash loses nothing that was measured.
"""


def add_parser(subparsers: Commands) -> None:
    """Add the command to the program."""
    parser = add_command(subparsers, "executor", DESCRIPTION, run_executor, store=True)
    parser.add_argument(
        "--policy", default="load-aware", metavar="NAME", help="scheduling policy (default: load-aware)"
    )
    add_farm_options(parser)
    parser.add_argument("--attached", action="store_true", help="exit when standard input closes")
    parser.add_argument("--until-idle", action="store_true", help="exit when no run is left")


def run_executor(options: argparse.Namespace) -> int:
    """Serve until asked to end."""
    from tuneloom.app.runs.executing.serving import serve_runs

    if options.attached:
        threading.Thread(target=_end_with_input, name="attached", daemon=True).start()
    serve_runs(run_settings(options), until_idle=options.until_idle, began=_say_so)
    return 0


def _say_so() -> None:
    print("executing submitted runs; Ctrl-C or SIGTERM to stop", file=sys.stderr, flush=True)


def _end_with_input() -> None:
    """Ask this process to end in order once nobody holds the other end of its standard input.

    Reads without a buffer: whoever waits in one when the interpreter ends takes it down with a fatal error.
    """
    while os.read(sys.stdin.fileno(), 4096):
        pass
    os.kill(os.getpid(), signal.SIGTERM)
