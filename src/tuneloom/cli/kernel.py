"""`tuneloom kernel`: tune a kernel described in a file, export what was measured, replay searches."""

import argparse
import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from tuneloom.cli import kernel_replay
from tuneloom.cli.numbers import count, natural, positive, seed
from tuneloom.tuners.kernel import SEARCHES, STARTS

if TYPE_CHECKING:
    from tuneloom.model import JobSpec

FORMATS = ("csv", "kernel-tuner", "ktt", "t4")
TUNE = """\
Tune the kernel that a TOML file describes: its source, its knobs, its arguments, and what
is right. Failures of any kind cost one trial each and are learned from. What the file says
under [tuning] counts where no option says otherwise.

  tuneloom kernel tune conv.toml
  tuneloom kernel tune conv.toml --trials 100 --export measured.csv.gz

Every trial is kept at once: `tuneloom resume RUN` goes on after an interruption, and
`tuneloom report RUN` shows what failed where. Kernels can also stand in a jobs file
beside models: `tuneloom tune --jobs jobs.toml`.
"""
EXPORT = """\
Write the trials of a run's kernel, finished or not, in a format that other tuners read and
`tuneloom kernel replay` as well.

  tuneloom kernel export last measured.csv.gz
  tuneloom kernel export last cache.json --format kernel-tuner
"""


def add_parser(subparsers: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add the group of commands."""
    group = subparsers.add_parser("kernel", help="tune hand-written kernels")
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
    parser.add_argument("--search", choices=SEARCHES, help=f"how to search (default: {SEARCHES[0]})")
    parser.add_argument("--init", choices=STARTS, help=f"where to start (default: {STARTS[0]})")
    _add_budget(parser)
    parser.add_argument(
        "--presample", action="store_true", default=None, help="build around valid points before running any"
    )
    parser.add_argument("--spare", type=natural, metavar="N", help="build N more than are run in a round")
    parser.add_argument("--export", type=Path, metavar="FILE", help="write every trial to this file")
    parser.add_argument("--format", choices=FORMATS, default="csv", help="of the export (default: csv)")
    parser.add_argument("--device", metavar="KEY", help="the device to run on (default: by language)")
    parser.add_argument("--device-cores", type=count, default=1, help="cores of the CPU device (default: 1)")
    parser.add_argument("--store", help="a store's path or address (default: the one of TUNELOOM_HOME)")
    parser.add_argument("--json", action="store_true", help="print the result as JSON, for programs")
    parser.add_argument("--quiet", action="store_true", help="no progress")
    parser.set_defaults(func=run_tune)


def _add_budget(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--trials", type=count, help="evaluations, failed ones included (default: 200)")
    parser.add_argument("--seconds", type=positive, help="stop after this time")
    parser.add_argument("--goal-ms", type=positive, help="stop when the kernel is this fast")
    parser.add_argument("--seed", type=seed, default=0, help="where chance starts (default: 0)")
    parser.add_argument("--run-timeout", type=positive, metavar="S", help="most time for one run")
    parser.add_argument("--build-timeout", type=positive, metavar="S", help="most time for one build")


def _add_export(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    parser = commands.add_parser(
        "export",
        help="write the trials of a run's kernel for other tuners",
        description=EXPORT,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("run", metavar="RUN", help="the run's name, or `last`")
    parser.add_argument("file", type=Path, metavar="FILE", help="where to write; .gz compresses")
    parser.add_argument("--format", choices=FORMATS, default="csv", help="default: csv")
    parser.add_argument("--job", metavar="NAME", help="which kernel, if the run has several")
    parser.add_argument("--store", help="a store's path or address (default: the one of TUNELOOM_HOME)")
    parser.set_defaults(func=run_export)


def run_tune(options: argparse.Namespace) -> int:
    """Tune one kernel and print what was found."""
    from tuneloom.app.runs.service import RunSettings, tune
    from tuneloom.cli.live import display_for
    from tuneloom.cli.tune import finish

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
