"""`tuneloom executor`: carry out what others submitted to a store."""

import argparse

from tuneloom.cli.numbers import count

DESCRIPTION = """\
Carry out runs that wait in a store, and those whose executors are gone. Several executors, on
one machine or on many, may work on one store: each run is carried out by one of them at a time.

  tuneloom tune zoo:squeezenet --detach --store postgresql://tuning@db/tuneloom
  tuneloom executor --store postgresql://tuning@db/tuneloom

SIGTERM or Ctrl-C lets running stages end and gives the runs back; another executor, or this one
when it is started again, goes on with them. Nothing that was measured is lost by a crash either.
"""


def add_parser(subparsers: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add the command to the program."""
    parser = subparsers.add_parser(
        "executor",
        help="carry out runs that others submitted",
        description=DESCRIPTION,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--store", help="a store's path or address (default: the one of TUNELOOM_HOME)")
    parser.add_argument("--policy", default="load-aware", metavar="NAME", help="scheduling policy")
    parser.add_argument(
        "--device-cores", type=count, default=1, metavar="N", help="cores that measure (default: 1, the last)"
    )
    parser.add_argument("--until-idle", action="store_true", help="end when no run is left")
    parser.set_defaults(func=run_executor)


def run_executor(options: argparse.Namespace) -> int:
    """Serve until asked to end."""
    from tuneloom.app.runs.service import RunSettings
    from tuneloom.app.runs.serving import serve_runs

    settings = RunSettings(policy=options.policy, store=options.store, device_cores=options.device_cores)
    serve_runs(settings, until_idle=options.until_idle)
    return 0
