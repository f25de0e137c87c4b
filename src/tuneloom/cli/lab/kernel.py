"""`tuneloom kernel`: tune a kernel described in a file, export what was measured, replay searches."""

import argparse
import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from tuneloom.cli.lab import kernel_replay
from tuneloom.cli.numbers import count, natural, positive, seed
from tuneloom.tuners.kernel import SEARCHES, STARTS

if TYPE_CHECKING:
    from tuneloom.model import JobSpec

FORMATS = ("csv", "kernel-tuner", "ktt", "t4")
TUNE = """\
Tune the kernel that a TOML file describes: its source, knobs, arguments and reference result.
A failure of any kind costs one trial, and the search learns from it. Options override the
values in the section [tuning] of the file.

  tuneloom kernel tune conv.toml
  tuneloom kernel tune conv.toml --trials 100 --export measured.csv.gz

Every trial is saved immediately: `tuneloom resume RUN` continues after an interruption, and
`tuneloom report RUN` shows what failed where. A jobs file can list kernels and models side by
side: `tuneloom tune --jobs jobs.toml`.
"""
EXPORT = """\
Write the trials of a run's kernel, finished or not, in a format that other tuners and
`tuneloom kernel replay` can read.

  tuneloom kernel export last measured.csv.gz
  tuneloom kernel export last cache.json --format kernel-tuner
"""


def add_parser(subparsers: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add the group of commands."""
    group = subparsers.add_parser(
        "kernel", help="tune hand-written kernels", description="Tune hand-written kernels with knobs."
    )
    commands = group.add_subparsers(dest="kernel_command", metavar="COMMAND", required=True)
    _add_tune(commands)
    _add_export(commands)
    kernel_replay.add_parser(commands, FORMATS)


def _add_tune(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    parser = commands.add_parser(
        "tune",
        help="tune the kernel that a TOML file describes",
        description=TUNE,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("file", type=Path, metavar="FILE", help="a TOML file that describes a kernel")
    parser.add_argument("--search", choices=SEARCHES, help=f"search method (default: {SEARCHES[0]})")
    parser.add_argument(
        "--init", choices=STARTS, help=f"how the first points are chosen (default: {STARTS[0]})"
    )
    _add_budget(parser)
    parser.add_argument(
        "--presample",
        action="store_true",
        default=None,
        help="build points near valid ones before running any",
    )
    parser.add_argument(
        "--spare", type=natural, metavar="N", help="build N more candidates per round than are run"
    )
    parser.add_argument("--export", type=Path, metavar="FILE", help="write all trials to this file")
    parser.add_argument(
        "--format", choices=FORMATS, default="csv", help="format of the export (default: csv)"
    )
    parser.add_argument(
        "--device", metavar="KEY", help="key of the device to run on (default: chosen by language)"
    )
    parser.add_argument(
        "--device-cores",
        type=count,
        default=1,
        metavar="N",
        help="number of cores to measure on (default: 1)",
    )
    parser.add_argument("--store", help="path or URL of the store (default: store.db in TUNELOOM_HOME)")
    parser.add_argument("--json", action="store_true", help="print the result as JSON")
    parser.add_argument("--quiet", action="store_true", help="do not show progress")
    parser.set_defaults(func=run_tune)


def _add_budget(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--trials", type=count, metavar="N", help="number of trials, including failed ones (default: 200)"
    )
    parser.add_argument("--seconds", type=positive, metavar="S", help="stop after S seconds")
    parser.add_argument(
        "--goal-ms", type=positive, metavar="MS", help="stop when the kernel takes at most MS milliseconds"
    )
    parser.add_argument("--seed", type=seed, default=0, metavar="N", help="random seed (default: 0)")
    parser.add_argument("--run-timeout", type=positive, metavar="S", help="time limit per run (default: 10)")
    parser.add_argument(
        "--build-timeout", type=positive, metavar="S", help="time limit per build (default: 30)"
    )


def _add_export(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    parser = commands.add_parser(
        "export",
        help="write the trials of a run's kernel for other tuners",
        description=EXPORT,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("run", metavar="RUN", help="name of the run, or `last`")
    parser.add_argument(
        "file", type=Path, metavar="FILE", help="output file; compressed if its name ends in .gz"
    )
    parser.add_argument("--format", choices=FORMATS, default="csv", help="output format (default: csv)")
    parser.add_argument("--job", metavar="NAME", help="name of the kernel, if the run has several")
    parser.add_argument("--store", help="path or URL of the store (default: store.db in TUNELOOM_HOME)")
    parser.set_defaults(func=run_export)


def run_tune(options: argparse.Namespace) -> int:
    """Tune one kernel and print what was found."""
    from tuneloom.app.runs.executing.in_process import tune
    from tuneloom.app.runs.settings import RunSettings
    from tuneloom.cli.live import display_for
    from tuneloom.cli.local.tune import finish

    settings = RunSettings(store=options.store, device_cores=options.device_cores)
    command = shlex.join(["tuneloom", *sys.argv[1:]])
    with display_for(quiet=options.quiet or options.json) as display:
        outcome = tune([kernel_job(options)], settings, command, display)
    code = finish(outcome, options.json)
    if options.export:
        _export(outcome.run, options, to=options.export)
    return code


def kernel_job(options: argparse.Namespace) -> "JobSpec":
    """The job that the command line and the kernel's file describe together."""
    from tuneloom.app.kinds.kernel.specs import described_spec

    values = {
        "search": options.search,
        "init": options.init,
        "trials": options.trials,
        "seconds": options.seconds,
        "goal_ms": options.goal_ms,
        "seed": options.seed,
        "run_timeout_s": options.run_timeout,
        "build_timeout_s": options.build_timeout,
        "presample": options.presample,
        "spare": options.spare,
        "device": options.device,
    }
    return described_spec(options.file, values)


def run_export(options: argparse.Namespace) -> int:
    """Write the trials of a run's kernel."""
    _export(options.run, options, to=options.file, job=options.job)
    return 0


def _export(run: str, options: argparse.Namespace, *, to: Path, job: str | None = None) -> None:
    from tuneloom.app.bank.kernel_export import export_kernel

    count = export_kernel(run, to, options.format, job, options.store)
    print(f"{count} trials written to {to}", file=sys.stderr if vars(options).get("json") else sys.stdout)
