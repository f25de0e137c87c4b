"""`tuneloom tune` and `tuneloom resume`: from a model to a bundle."""

import argparse
import json
import shlex
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tuneloom.cli.numbers import count, positive, seed, whole
from tuneloom.errors import InputError
from tuneloom.model import DTYPES, REUSE, JobSpec, MeasuringRules

if TYPE_CHECKING:
    from tuneloom.app.runs.executing.in_process import RunOutcome

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

Every measurement is saved immediately: after Ctrl-C, a crash or a power failure,
`tuneloom resume RUN` continues where it stopped.
"""
RESUME = """\
Resume an interrupted run with the rest of its budget. Nothing is measured twice, and models
and samples are used as they were when the run was started.

  tuneloom resume last
  tuneloom resume amber-heron-42
"""


def add_parser(subparsers: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add the commands to the program."""
    parser = subparsers.add_parser(
        "tune",
        help="tune models and write bundles",
        description=DESCRIPTION,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("models", nargs="*", metavar="MODEL", help="a model file, or zoo:NAME")
    parser.add_argument(
        "--jobs", type=Path, metavar="FILE", help="a TOML file that lists jobs, instead of MODEL"
    )
    add_job_options(parser)
    parser.add_argument(
        "--policy",
        default="load-aware",
        metavar="NAME",
        help="scheduling policy: load-aware (default), interleaved, sequential or synchronous",
    )
    parser.add_argument(
        "--device-cores",
        type=count,
        default=1,
        metavar="N",
        help="number of cores to measure on (default: 1)",
    )
    add_farm_options(parser)
    parser.add_argument(
        "--detach", action="store_true", help="submit only; a `tuneloom executor` carries the run out"
    )
    _add_common(parser)
    parser.set_defaults(func=run_tune)
    again = subparsers.add_parser(
        "resume",
        help="resume an interrupted run",
        description=RESUME,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    again.add_argument("run", metavar="RUN", help="name of the run, or `last`")
    again.add_argument("--farm", metavar="FILE", help="continue on this farm (default: where the run was)")
    _add_common(again)
    again.set_defaults(func=run_resume)


def add_farm_options(parser: argparse.ArgumentParser) -> None:
    """Add what says where runs are carried out."""
    parser.add_argument("--farm", metavar="FILE", help="use the machines and devices of a farm file")
    parser.add_argument(
        "--insecure",
        action="store_true",
        help="use a Ray cluster even if it runs code for anybody who can reach it",
    )


def add_job_options(parser: argparse.ArgumentParser) -> None:
    """Add what can be said of a job, for every command that makes jobs."""
    parser.add_argument(
        "--target", default="cpu", help="cpu (this machine's CPU, the default), cuda, or a TVM target in JSON"
    )
    parser.add_argument(
        "--device",
        action="append",
        metavar="KEY",
        help="key of the device to measure on (default: chosen by target); repeated: a job for each",
    )
    parser.add_argument("--tuner", metavar="NAME", help="tuner to use (default: chosen by model)")
    _add_budget(parser)
    parser.add_argument(
        "--shape",
        action="append",
        default=[],
        metavar="NAME=1,3,224,224",
        help="set the shape of an input; several shapes of one input (also as 1|8,3,224,224) make one bundle "
        "for all of them",
    )
    parser.add_argument(
        "--pad",
        action="store_true",
        help="let the bundle pad smaller inputs with zeros to the next larger of its shapes",
    )
    parser.add_argument(
        "--only-tvm",
        action="store_true",
        help="leave nothing to ONNX Runtime (default: it runs what TVM can't compile, or runs slower)",
    )
    parser.add_argument(
        "--dtype",
        choices=DTYPES,
        default="float32",
        help="compute convolutions and products with constant weights in bfloat16, or in int8 calibrated on "
        "--samples, by the CPU's instructions for it (default: float32)",
    )
    parser.add_argument(
        "--samples",
        metavar="FILE.npz",
        help="inputs to calibrate int8 on: one array per input, under its name",
    )
    parser.add_argument(
        "--tolerance",
        type=positive,
        default=0.1,
        metavar="R",
        help="largest relative change of the outputs that a lower precision may cause (default: 0.1)",
    )
    parser.add_argument("--seed", type=seed, default=0, metavar="N", help="random seed (default: 0)")
    parser.add_argument(
        "--reuse",
        choices=REUSE,
        default="auto",
        help="how to reuse schedules of other kernels (default: auto; see `tuneloom plan`)",
    )
    parser.add_argument("--out", metavar="DIR", help="folder for the bundle; must be new or empty")
    parser.add_argument(
        "--priority",
        type=whole,
        default=0,
        metavar="N",
        help="jobs with a higher priority go first (default: 0)",
    )
    parser.add_argument(
        "--deadline", type=positive, metavar="S", help="the job should finish within S seconds from now"
    )
    parser.add_argument(
        "--wait-for-devices",
        action="store_true",
        help="wait for a device with this KEY to appear instead of failing",
    )


def _add_budget(parser: argparse.ArgumentParser) -> None:
    rules = MeasuringRules()
    parser.add_argument(
        "--trials", type=count, default=1000, metavar="N", help="number of trials per model (default: 1000)"
    )
    parser.add_argument("--seconds", type=positive, metavar="S", help="stop tuning a model after S seconds")
    parser.add_argument(
        "--goal-ms",
        type=positive,
        metavar="MS",
        help="stop when the model's latency is at most MS milliseconds",
    )
    parser.add_argument(
        "--goal-ratio",
        type=positive,
        metavar="R",
        help="stop when the model takes at most R times as long as in ONNX Runtime",
    )
    parser.add_argument(
        "--batch", type=count, default=16, metavar="N", help="number of candidates per batch (default: 16)"
    )
    for name, default in (("run", rules.run_timeout_s), ("build", rules.build_timeout_s)):
        parser.add_argument(
            f"--{name}-timeout",
            type=positive,
            default=default,
            metavar="S",
            help=f"time limit for one {name}, in seconds (default: {default:g})",
        )


def _add_common(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--store", help="path or URL of the store (default: store.db in TUNELOOM_HOME)")
    parser.add_argument("--json", action="store_true", help="print the result as JSON")
    parser.add_argument("--quiet", action="store_true", help="do not show progress")


def run_tune(options: argparse.Namespace) -> int:
    """Tune and print what came out."""
    from tuneloom.app.runs.executing.in_process import tune
    from tuneloom.app.runs.settings import RunSettings
    from tuneloom.app.runs.submitting.submission import detach
    from tuneloom.cli.live import display_for

    settings = RunSettings(
        policy=options.policy,
        store=options.store,
        device_cores=options.device_cores,
        farm=options.farm,
        insecure=options.insecure,
    )
    command = shlex.join(["tuneloom", *sys.argv[1:]])
    if options.detach:
        run = detach(job_specs(options), settings, command)
        print(json.dumps({"run": run}) if options.json else f"submitted as {run}")
        return 0
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
    from tuneloom.app.requests.job_specs import job_spec
    from tuneloom.app.requests.jobs_file import read_jobs
    from tuneloom.app.requests.sources import job_names, located

    if options.jobs is not None:
        if options.models:
            raise InputError("give either models or --jobs FILE, not both; a jobs file names its own models")
        if options.device and len(options.device) > 1:
            raise InputError("several --device are for models; in a jobs file each job names its own device")
        jobs = read_jobs(options.jobs, job_values(options))
        return [replace(job, out=job.out or _place(options.out, job.name, True)) for job in jobs]
    if not options.models:
        raise InputError("no model given; name a file, zoo:NAME, or --jobs FILE")
    names = job_names(options.models, tuner=options.tuner)
    many = len(names) > 1
    return [
        job_spec(
            job_values(options)
            | {
                "name": name,
                "model": located(model, tuner=options.tuner),
                "out": _place(options.out, name, many),
            }
        )
        for name, model in zip(names, options.models, strict=True)
    ]


def job_values(options: argparse.Namespace) -> dict[str, Any]:
    """What the command line says of jobs, under the names that job files use."""
    return {
        "trials": options.trials,
        "seconds": options.seconds,
        "goal_ms": options.goal_ms,
        "goal_ratio": options.goal_ratio,
        "tuner": options.tuner,
        "target": options.target,
        "device": options.device[0] if options.device else None,
        "shapes": shapes_of(options.shape),
        "pad": options.pad,
        "run_timeout_s": options.run_timeout,
        "build_timeout_s": options.build_timeout,
        "batch": options.batch,
        "seed": options.seed,
        "reuse": options.reuse,
        "only_tvm": options.only_tvm,
        **_precision(options),
        "priority": options.priority,
        "deadline_s": options.deadline,
        "waits_for_devices": options.wait_for_devices,
    }


def _precision(options: argparse.Namespace) -> dict[str, Any]:
    """What the command line says of a lower precision; nothing where it says nothing."""
    samples = str(Path(options.samples).absolute()) if options.samples else None
    if options.dtype == "float32" and samples is None:
        return {}
    return {"dtype": options.dtype, "samples": samples, "tolerance": options.tolerance}


def shapes_of(texts: list[str]) -> dict[str, list[tuple[int, ...]]]:
    """`name=1,3,224,224` as data, all shapes of an input in a list; raises InputError for anything else.

    `name=1|8,3,224,224` stands for two shapes; where several sizes have alternatives, the nth of
    each belong together.
    """
    shapes: dict[str, list[tuple[int, ...]]] = {}
    for text in texts:
        name, separator, numbers = text.rpartition("=")
        found = _alternatives(numbers)
        if not separator or not found:
            raise InputError(
                f"can't read --shape {text!r}; write it as name=1,3,224,224 or name=1|8,3,224,224"
            )
        shapes.setdefault(name, []).extend(found)
    return shapes


def _alternatives(text: str) -> list[tuple[int, ...]]:
    """The shapes that a text stands for; none if it can't be read."""
    try:
        sizes = [[int(number) for number in part.split("|")] for part in text.split(",")]
    except ValueError:
        return []
    count = max(map(len, sizes))
    if any(len(size) not in (1, count) or min(size) < 1 for size in sizes):
        return []
    return [tuple(size[n % len(size)] for size in sizes) for n in range(count)]


def _place(out: str | None, name: str, many: bool) -> str | None:
    if out is None:
        return None
    folder = Path(out).absolute()
    return str(folder / name if many else folder)
