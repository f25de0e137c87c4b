"""`tuneloom kernel`: tune a kernel described in a file, export what was measured, replay searches."""

import argparse
import shlex
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from tuneloom.cli.job_options import add_job_options, fields_named
from tuneloom.cli.lab import kernel_replay
from tuneloom.cli.parsing import Commands, add_command, add_device_cores, add_quiet, add_run
from tuneloom.model import JobField
from tuneloom.model.fields import COUNT
from tuneloom.tuners.kernel import DEFAULT_TRIALS, KERNEL_FIELDS

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


def add_parser(subparsers: Commands) -> None:
    """Add the group of commands."""
    group = add_command(subparsers, "kernel", "Tune hand-written kernels with knobs.")
    commands = group.add_subparsers(dest="kernel_command", metavar="COMMAND", required=True)
    _add_tune(commands)
    _add_export(commands)
    kernel_replay.add_parser(commands, FORMATS)


def _add_tune(commands: Commands) -> None:
    parser = add_command(
        commands,
        "tune",
        TUNE,
        run_tune,
        help="tune the kernel that a TOML file describes",
        store=True,
        json="print the result as JSON",
    )
    parser.add_argument("file", type=Path, metavar="FILE", help="a TOML file that describes a kernel")
    add_job_options(parser, _fields())
    parser.add_argument("--export", type=Path, metavar="FILE", help="write all trials to this file")
    parser.add_argument(
        "--format", choices=FORMATS, default="csv", help="format of the export (default: csv)"
    )
    add_device_cores(parser)
    add_quiet(parser)


def _fields() -> list[JobField]:
    """What can be said of a kernel on the command line; the last word on defaults has its file."""
    trials, device, *rest = fields_named(
        "trials", "device", "seconds", "goal_ms", "seed", "run_timeout_s", "build_timeout_s"
    )
    told = "number of trials, including failed ones"
    trials = replace(trials, kind=COUNT, help=told, default=DEFAULT_TRIALS)
    device = replace(device, otherwise="chosen by language", for_each=False)
    return [*KERNEL_FIELDS, trials, *rest, device]


def _add_export(commands: Commands) -> None:
    parser = add_command(
        commands,
        "export",
        EXPORT,
        run_export,
        help="write the trials of a run's kernel for other tuners",
        store=True,
    )
    add_run(parser)
    parser.add_argument(
        "file", type=Path, metavar="FILE", help="output file; compressed if its name ends in .gz"
    )
    parser.add_argument("--format", choices=FORMATS, default="csv", help="output format (default: csv)")
    parser.add_argument("--job", metavar="NAME", help="name of the kernel, if the run has several")


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

    values = {field.name: getattr(options, field.name) for field in _fields()}
    return described_spec(options.file, values)


def run_export(options: argparse.Namespace) -> int:
    """Write the trials of a run's kernel."""
    _export(options.run, options, to=options.file, job=options.job)
    return 0


def _export(run: str, options: argparse.Namespace, *, to: Path, job: str | None = None) -> None:
    from tuneloom.app.bank.exchange import export_kernel

    count = export_kernel(run, to, options.format, job, options.store)
    print(f"{count} trials written to {to}", file=sys.stderr if vars(options).get("json") else sys.stdout)
