"""`tuneloom add|cancel|pause|unpause|stages`: what can be asked of a run while it goes on, and after."""

import argparse
import json
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from tuneloom.cli.job_options import add_job_options
from tuneloom.cli.local.tune import add_models, job_specs
from tuneloom.cli.parsing import Commands, add_command, add_run, tell
from tuneloom.errors import InputError
from tuneloom.model import JobSpec

if TYPE_CHECKING:
    from tuneloom.store import JobRecord

ADD = """\
Add jobs to a run that is executing in another process. They start within a second or two.

  tuneloom add last zoo:resnet18 --trials 500 --priority 5 --out fast/
  tuneloom add amber-heron-42 --jobs more.toml
"""
CANCEL = """\
Cancel one job of a run that is executing in another process, or all of its jobs. Everything
they measured is kept.

  tuneloom cancel last squeezenet
  tuneloom cancel last
"""
PAUSE = """\
Pause a job: stages that are running finish, no new ones start. `tuneloom unpause` continues it.

  tuneloom pause last squeezenet
"""
UNPAUSE = """\
Continue a paused job.

  tuneloom unpause last squeezenet
"""
STAGES = """\
Print how long every stage of a run took, as JSON lines, in the order in which they ended.

  tuneloom stages last > stages.jsonl
  tuneloom simulate --recorded stages.jsonl --policy all
"""
_JSON = "print the jobs as JSON"


def add_parser(subparsers: Commands) -> None:
    """Add the commands to the program."""
    _add_add(subparsers)
    _add_cancel(subparsers)
    for name, text, function in (("pause", PAUSE, pause_job), ("unpause", UNPAUSE, unpause_job)):
        move = add_command(subparsers, name, text, function, store=True, json=_JSON)
        add_run(move)
        move.add_argument("job", metavar="JOB", help="name of the job")
    add_run(add_command(subparsers, "stages", STAGES, print_stages, store=True))


def _add_add(subparsers: Commands) -> None:
    add = add_command(subparsers, "add", ADD, add_jobs, store=True, json=_JSON)
    add_run(add)
    add_models(add)
    add.add_argument("--name", help="name of the job (default: the model's name)")
    add_job_options(add)


def _add_cancel(subparsers: Commands) -> None:
    cancel = add_command(subparsers, "cancel", CANCEL, cancel_jobs, store=True, json=_JSON)
    add_run(cancel)
    cancel.add_argument("job", nargs="?", metavar="JOB", help="name of the job (default: all jobs)")


def add_jobs(options: argparse.Namespace) -> int:
    """Leave new jobs for the run."""
    from tuneloom.app.runs.asking import control as job_control

    specs = named(job_specs(options), options.name)
    free = options.name is None and options.jobs is None
    added = job_control.add_jobs(options.run, specs, options.store, renames=free)
    return _tell(options, added, "{job} added to {run}")


def named(specs: list[JobSpec], name: str | None) -> list[JobSpec]:
    """The jobs, the only one of them under a name of the user's choice."""
    if name is None:
        return specs
    if len(specs) > 1:
        raise InputError(
            f"--name {name!r} is for a single job, but there are {len(specs)}; add them one at a time"
        )
    return [replace(specs[0], name=name)]


def cancel_jobs(options: argparse.Namespace) -> int:
    """Leave the wish to end jobs."""
    from tuneloom.app.runs.asking import control as job_control

    told = job_control.cancel(options.run, options.job, options.store)
    return _tell(options, told, "cancelling {job}; everything it measured is kept")


def pause_job(options: argparse.Namespace) -> int:
    """Leave the wish to pause a job."""
    from tuneloom.app.runs.asking import control as job_control

    told = job_control.pause(options.run, options.job, options.store)
    return _tell(options, [told], "pausing {job}; continue it with: tuneloom unpause {run} {job}")


def unpause_job(options: argparse.Namespace) -> int:
    """Leave the wish to let a job go on."""
    from tuneloom.app.runs.asking import control as job_control

    return _tell(options, [job_control.unpause(options.run, options.job, options.store)], "continuing {job}")


def _tell(options: argparse.Namespace, jobs: "Sequence[JobRecord]", words: str) -> int:
    named = [{"run": job.run, "job": job.name} for job in jobs]
    return tell(options, named, *(words.format(**each) for each in named))


def print_stages(options: argparse.Namespace) -> int:
    """Print the recorded stage times."""
    from tuneloom.app.reports.stage_times import stage_times

    for line in stage_times(options.run, options.store):
        print(json.dumps(line))
    return 0
