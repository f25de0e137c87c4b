"""`tuneloom tune` and `tuneloom resume`: from a model to a bundle."""

import argparse
import json
import shlex
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from tuneloom.cli.job_options import add_job_options, job_values
from tuneloom.cli.parsing import (
    Commands,
    add_command,
    add_device_cores,
    add_insecure,
    add_quiet,
    add_run,
    tell,
)
from tuneloom.errors import InputError
from tuneloom.model import JobSpec

if TYPE_CHECKING:
    from tuneloom.app.runs.executing.in_process import RunOutcome
    from tuneloom.app.runs.settings import RunSettings

DESCRIPTION = """\
Tune models for a device: find fast kernels by trial, build the model with them, check its
outputs against those of the untuned model and write a bundle that can be deployed.

MODEL is a path (.onnx; .pt2 from torch.export; .tflite), zoo:NAME, or NAME:… for a tuner
that is installed under that name. Several models are several jobs of one run, which share
the machine.

  tuneloom tune zoo:squeezenet --trials 500 --out fast/
  tuneloom tune net.onnx --shape input=1,3,224,224 --seconds 600 --out fast/
  tuneloom tune a.onnx b.onnx --trials 800 --out fast/    (writes fast/a and fast/b)
  tuneloom tune --jobs jobs.toml                          (each job with its own options)
  tuneloom tune net.onnx --out fast/ --server http://farm:8321    (let a server tune it)
  tuneloom tune net.onnx --shape x=1..64,3,224,224 --out fast/    (for all batches from 1 to 64)
  tuneloom tune --from-log fast/ --out faster/            (for the sizes that fast/ was asked for)

Every measurement is saved immediately: after Ctrl-C, a crash or a power failure,
`tuneloom resume RUN` continues where it stopped.
"""
RESUME = """\
Resume an interrupted run with the rest of its budget. Nothing is measured twice, and models
and samples are used as they were when the run was started.

  tuneloom resume last
  tuneloom resume amber-heron-42
"""
_JSON = "print the result as JSON"


def add_parser(subparsers: Commands) -> None:
    """Add the commands to the program."""
    parser = add_command(subparsers, "tune", DESCRIPTION, run_tune, store=True, json=_JSON)
    add_models(parser)
    add_job_options(parser)
    parser.add_argument(
        "--policy",
        default="load-aware",
        metavar="NAME",
        help="scheduling policy: load-aware (default), interleaved, sequential or synchronous",
    )
    add_farm_options(parser)
    parser.add_argument(
        "--detach", action="store_true", help="submit only; a `tuneloom executor` executes the run"
    )
    add_quiet(parser)
    again = add_command(subparsers, "resume", RESUME, run_resume, store=True, json=_JSON)
    add_run(again)
    again.add_argument("--farm", metavar="FILE", help="continue on this farm (default: where the run was)")
    add_quiet(again)


def add_models(parser: argparse.ArgumentParser) -> None:
    """Add the ways to name what is tuned."""
    parser.add_argument("models", nargs="*", metavar="MODEL", help="a model file, or zoo:NAME")
    parser.add_argument(
        "--jobs", type=Path, metavar="FILE", help="a TOML file that lists jobs, instead of MODEL"
    )
    again = "tune the model of a bundle for the sizes it was asked for most often, instead of MODEL"
    parser.add_argument("--from-log", type=Path, metavar="BUNDLE", help=again)


def add_farm_options(parser: argparse.ArgumentParser) -> None:
    """Add what says where runs are carried out."""
    add_device_cores(parser)
    parser.add_argument("--farm", metavar="FILE", help="use the machines and devices of a farm file")
    add_insecure(parser)


def run_settings(options: argparse.Namespace) -> "RunSettings":
    """How runs are carried out, as the options say."""
    from tuneloom.app.runs.settings import RunSettings

    names = ("policy", "store", "device_cores", "farm", "insecure")
    return RunSettings(**{name: getattr(options, name) for name in names})


def run_tune(options: argparse.Namespace) -> int:
    """Tune and print what came out."""
    from tuneloom.app.runs.executing.in_process import tune
    from tuneloom.app.runs.submitting import detach
    from tuneloom.cli.live import display_for

    settings = run_settings(options)
    command = shlex.join(["tuneloom", *sys.argv[1:]])
    if options.detach:
        run = detach(job_specs(options), settings, command)
        return tell(options, {"run": run}, f"submitted as {run}")
    with display_for(quiet=options.quiet or options.json) as display:
        outcome = tune(job_specs(options), settings, command, display)
    return finish(outcome, options.json)


def run_resume(options: argparse.Namespace) -> int:
    """Resume and print what came out."""
    from tuneloom.app.runs.executing.in_process import resume
    from tuneloom.cli.live import display_for

    with display_for(quiet=options.quiet or options.json) as display:
        outcome = resume(options.run, options.store, display, options.farm)
    return finish(outcome, options.json)


def finish(outcome: "RunOutcome", as_json: bool) -> int:
    """Print what came out of a run; raises its first error, if there was one."""
    from tuneloom.cli.summary import print_outcome

    if as_json:
        jobs = [
            {"name": j.name, "status": j.status.value, "spec": j.spec, "result": j.result}
            for j in outcome.jobs
        ]
        print(json.dumps({"run": outcome.run, "jobs": jobs}, indent=2))
    else:
        print_outcome(outcome)
    if outcome.failure is not None:
        raise outcome.failure
    return 0


def job_specs(options: argparse.Namespace) -> list[JobSpec]:
    """One job for each model of the command line, or the jobs of a file; several devices: one for each."""
    from tuneloom.app.farm.aiming import for_devices

    return for_devices(_job_specs(options), options.device or ())


def _job_specs(options: argparse.Namespace) -> list[JobSpec]:
    from tuneloom.app.requests.from_log import job_from_log
    from tuneloom.app.requests.job_specs import job_spec
    from tuneloom.app.requests.jobs_file import read_jobs
    from tuneloom.app.requests.sources import job_names, located

    if options.from_log is not None:
        if options.models or options.jobs:
            raise InputError("--from-log names the model by its bundle; omit MODEL and --jobs")
        place = {"out": _place(options.out, options.from_log.stem, False)}
        return [job_from_log(options.from_log, {**job_values(options), **place})]
    if options.jobs is not None:
        if options.models:
            raise InputError("give either models or --jobs FILE, not both; a jobs file names its own models")
        if options.device and len(options.device) > 1:
            raise InputError(
                "--device can be repeated only for models; in a jobs file each job names its own device"
            )
        jobs = read_jobs(options.jobs, job_values(options))
        return [replace(job, out=job.out or _place(options.out, job.name, True)) for job in jobs]
    if not options.models:
        raise InputError("no model given; name a file, zoo:NAME, --jobs FILE, or --from-log BUNDLE")
    names = job_names(options.models, tuner=options.tuner)
    many, common = len(names) > 1, job_values(options)
    return [
        job_spec(
            {
                "name": name,
                "model": located(model, tuner=options.tuner),
                "out": _place(options.out, name, many),
                **({} if many else common),
            },
            common,
        )
        for name, model in zip(names, options.models, strict=True)
    ]


def _place(out: str | None, name: str, many: bool) -> str | None:
    if out is None:
        return None
    folder = Path(out).absolute()
    return str(folder / name if many else folder)
