"""`tuneloom simulate`: what a policy would make of given or recorded stage times."""

import argparse
import json
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from rich.console import Console
from rich.table import Table

from tuneloom.cli.parsing import Commands, add_command, count, seed
from tuneloom.errors import InputError
from tuneloom.model import ROUND, Device, Host
from tuneloom.scheduling import POLICIES, policy_named
from tuneloom.scheduling.stages import DeviceDemand
from tuneloom.simulation import (
    THESIS_STAGES,
    LowerBound,
    RecordedJob,
    ResourceUse,
    RoundsJob,
    SimulationResult,
    Workload,
    load_recorded,
    lower_bound,
    poisson_arrivals,
    simulate,
)

DESCRIPTION = (
    "Simulate jobs under a virtual clock and print, for each policy, makespan, utilisation and waiting "
    "times, and a lower bound that no schedule can beat. Utilisation counts slots in use; waiting times and "
    "the time jobs stay in the system are means."
)
COUNTS = {
    "--jobs": (4, "number of identical jobs"),
    "--rounds": (10, "rounds per job"),
    "--parts": (1, "candidates per round, streamed from build to profile"),
    "--lanes": (1, "batches of one job in flight"),
    "--hosts": (1, "number of hosts"),
    "--slots": (1, "slots per host"),
    "--devices": (1, "devices per key"),
}
COLUMNS = ("policy", "makespan", "of bound", "host busy", "device busy", "host wait", "device wait", "stay")


def add_parser(subparsers: Commands) -> None:
    """Add the command `simulate`."""
    default = ",".join(f"{kind}={seconds:g}" for kind, seconds in THESIS_STAGES.items())
    parser = add_command(subparsers, "simulate", DESCRIPTION, run, json="print all results as JSON")
    parser.add_argument(
        "--stages", default=default, help=f"seconds per stage of a round (default: {default})"
    )
    for option, (usual, words) in COUNTS.items():
        words = f"{words} (default: {usual})"
        parser.add_argument(option, type=count, default=usual, metavar="N", help=words)
    parser.add_argument(
        "--recorded",
        type=Path,
        metavar="FILE",
        help="use stage times of a real run, from `tuneloom stages`, instead of --stages",
    )
    parser.add_argument(
        "--policy", default="all", help=f"all, or one of {', '.join(POLICIES)} (default: all)"
    )
    parser.add_argument(
        "--arrivals",
        default="together",
        help="'together' (default), or 'poisson:RATE' with RATE in jobs per hour",
    )
    parser.add_argument(
        "--seed", type=seed, default=0, metavar="N", help="random seed of the arrivals (default: 0)"
    )


def run(arguments: argparse.Namespace) -> int:
    """Simulate and print; raises InputError for what makes no sense."""
    names = list(POLICIES) if arguments.policy == "all" else [policy_named(arguments.policy).name]
    jobs = _jobs(arguments)
    resources = _resources(arguments, jobs)
    bound = lower_bound(jobs, resources)
    workload = Workload(jobs=jobs, seed=arguments.seed)
    results = [simulate(workload, resources, name, keep_log=False) for name in names]
    if arguments.json:
        print(json.dumps(_as_json(bound, results), indent=2))
    else:
        _print_table(bound, results)
    return 0


def parse_stages(text: str) -> dict[str, float]:
    """Seconds by kind from `select=22,build=8.3,…`; raises InputError naming the wrong piece."""
    stages: dict[str, float] = {}
    known = ", ".join(kind.value for kind in ROUND)
    for piece in text.split(","):
        kind, equals, number = (part.strip() for part in piece.partition("="))
        if not equals or kind not in [stage.value for stage in ROUND]:
            raise InputError(f"--stages: can't read {piece!r}; write KIND=SECONDS with KIND one of {known}")
        if kind in stages:
            raise InputError(f"--stages: {kind!r} is given twice; give each stage once")
        stages[kind] = _seconds(kind, number)
    return stages


def _seconds(kind: str, number: str) -> float:
    try:
        seconds = float(number)
    except ValueError:
        raise InputError(f"--stages: {kind} needs a number of seconds, got {number!r}") from None
    if not 0 <= seconds < float("inf"):
        raise InputError(f"--stages: {kind} can't take {number} s; give a time of at least 0")
    return seconds


def _arrival_times(text: str, count: int, seed: int) -> tuple[float, ...]:
    if text == "together":
        return (0.0,) * count
    kind, _, rate = text.partition(":")
    try:
        per_hour = float(rate)
    except ValueError:
        per_hour = -1.0
    if kind != "poisson" or not 0 < per_hour < float("inf"):
        raise InputError(
            f"--arrivals: can't read {text!r}; write 'together' or 'poisson:RATE', e.g. poisson:12"
        )
    return poisson_arrivals(count, per_hour, seed)


def _jobs(arguments: argparse.Namespace) -> tuple[RoundsJob | RecordedJob, ...]:
    jobs: Sequence[RoundsJob | RecordedJob]
    if arguments.recorded is not None:
        jobs = [replace(job, prior_factor=1.0) for job in load_recorded(arguments.recorded)]
    else:
        stages = parse_stages(arguments.stages)
        jobs = [_job(f"job-{number + 1}", stages, arguments) for number in range(arguments.jobs)]
    times = _arrival_times(arguments.arrivals, len(jobs), arguments.seed)
    return tuple(replace(job, arrives_s=at_s) for job, at_s in zip(jobs, times, strict=True))


def _job(name: str, stages: dict[str, float], arguments: argparse.Namespace) -> RoundsJob:
    return RoundsJob(
        name=name,
        rounds=arguments.rounds,
        stages=stages,
        parts=arguments.parts,
        lanes_in_flight=arguments.lanes,
        prior_factor=1.0,
    )


def _resources(arguments: argparse.Namespace, jobs: Sequence[RoundsJob | RecordedJob]) -> list[Host | Device]:
    widest = max((_widest(job) for job in jobs), default=1)
    if arguments.slots < widest:
        raise InputError(f"a recorded stage used {widest} slots; give --slots {widest} or more")
    hosts = [Host(name=f"host-{number + 1}", slots=arguments.slots) for number in range(arguments.hosts)]
    keys = sorted({key for job in jobs for key in job.ticket.device_keys}) or ["device"]
    devices = [
        Device(name=f"{key}-{number + 1}", key=key) for key in keys for number in range(arguments.devices)
    ]
    return [*hosts, *devices]


def _widest(job: RoundsJob | RecordedJob) -> int:
    if isinstance(job, RoundsJob):
        return 1
    needs = [step.needs for lane in job.lane_steps for step in lane]
    return max((need.slots for need in needs if not isinstance(need, DeviceDemand)), default=1)


def _row(result: SimulationResult, bound: LowerBound) -> tuple[str, ...]:
    hosts = [use for use in result.resources if use.key is None]
    devices = [use for use in result.resources if use.key is not None]
    return (
        result.policy,
        f"{result.makespan_s:.1f} s",
        f"{result.makespan_s / bound.seconds:.3f}" if bound.seconds else "-",
        f"{_busy(hosts):.1%}",
        f"{_busy(devices):.1%}",
        f"{_wait_s(hosts):.1f} s",
        f"{_wait_s(devices):.1f} s",
        f"{result.mean_stay_s:.1f} s",
    )


def _busy(uses: Sequence[ResourceUse]) -> float:
    slots = sum(use.slots for use in uses)
    return sum(use.utilisation * use.slots for use in uses) / slots if slots else 0.0


def _wait_s(uses: Sequence[ResourceUse]) -> float:
    stages = sum(use.stages for use in uses)
    return sum(use.waited_s for use in uses) / stages if stages else 0.0


def _print_table(bound: LowerBound, results: Sequence[SimulationResult]) -> None:
    rows = [_row(result, bound) for result in results]
    if sys.stdout.isatty():
        table = Table(*COLUMNS)
        for row in rows:
            table.add_row(*row)
        Console().print(table)
    else:
        widths = [max(len(row[column]) for row in [COLUMNS, *rows]) for column in range(len(COLUMNS))]
        for row in [COLUMNS, *rows]:
            print("  ".join(text.ljust(width) for text, width in zip(row, widths, strict=True)).rstrip())
    print(f"lower bound {bound.seconds:.1f} s, set by: {bound.limit}")


def _as_json(bound: LowerBound, results: Sequence[SimulationResult]) -> dict[str, object]:
    return {
        "lower_bound_s": bound.seconds,
        "bound_set_by": bound.limit,
        "bounds_s": bound.candidates,
        "policies": [_result_json(result, bound) for result in results],
    }


def _result_json(result: SimulationResult, bound: LowerBound) -> dict[str, object]:
    return {
        "policy": result.policy,
        "makespan_s": result.makespan_s,
        "ratio_to_bound": result.makespan_s / bound.seconds if bound.seconds else None,
        "mean_stay_s": result.mean_stay_s,
        "decisions": result.decisions,
        "resources": [
            {
                "name": use.name,
                "key": use.key,
                "slots": use.slots,
                "utilisation": use.utilisation,
                "stages": use.stages,
                "mean_wait_s": use.mean_wait_s,
            }
            for use in result.resources
        ],
        "completed_s": result.completed_s,
    }
