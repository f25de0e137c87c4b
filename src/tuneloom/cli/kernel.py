"""`tuneloom kernel`: tune a kernel described in a file, or replay searches on recorded spaces."""

import argparse
from dataclasses import replace
from math import inf
from pathlib import Path
from typing import Any

from tuneloom.errors import BudgetError, RecordsError
from tuneloom.model import Budget, Failure, MeasuringPolicy, Trial
from tuneloom.tuners.kernel.description import Description, described
from tuneloom.tuners.kernel.drive import KernelResult, Plan, tune
from tuneloom.tuners.kernel.guided import Start
from tuneloom.tuners.kernel.searches import SEARCHES
from tuneloom.tuners.replay import files
from tuneloom.tuners.replay.exporting import recording_of
from tuneloom.tuners.replay.opponent import STRATEGIES, KernelTunerSimulation
from tuneloom.tuners.replay.recording import Recording
from tuneloom.tuners.replay.study import CHECKPOINTS, Summary, replayed, summarised

_TRIALS = 200


def add_parser(subparsers: Any) -> None:
    """Add the group of commands."""
    group = subparsers.add_parser("kernel", help="tune hand-written kernels")
    commands = group.add_subparsers(dest="kernel_command", required=True)
    _add_tune(commands)
    _add_replay(commands)


def _add_search(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--search", choices=list(SEARCHES), default="guided", help="default: guided")
    parser.add_argument("--init", choices=list(Start), default=Start.VALIDITY, help="where the search starts")
    parser.add_argument("--trials", type=int, help="evaluations, failed ones included")


def _add_tune(commands: Any) -> None:
    parser = commands.add_parser("tune", help="tune the kernel that a TOML file describes")
    parser.add_argument("file", type=Path)
    _add_search(parser)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--seconds", type=float, help="stop after this time")
    parser.add_argument(
        "--presample", action="store_true", help="build around valid points before running any"
    )
    parser.add_argument("--spare", type=int, default=0, help="build this many more than are run in a round")
    parser.add_argument("--export", type=Path, help="write every trial to this file")
    parser.add_argument("--format", choices=files.FORMATS, default="csv", help="of the export")
    parser.set_defaults(func=run_tune)


def _add_replay(commands: Any) -> None:
    parser = commands.add_parser("replay", help="run searches on recorded spaces")
    parser.add_argument("files", type=Path, nargs="+", metavar="FILE")
    _add_search(parser)
    parser.add_argument(
        "--seeds", type=int, default=20, help="runs with different seeds; 20 can mislead, 80 do not"
    )
    parser.add_argument(
        "--compare", choices=["kernel-tuner"], help="run the strategies of this tuner as well"
    )
    parser.add_argument(
        "--strategies", nargs="+", choices=STRATEGIES, metavar="NAME", help="of the other tuner"
    )
    parser.add_argument("--stress", action="store_true", help="what was not recorded of the grid fails")
    parser.add_argument("--export", type=Path, help="write the recording to this file")
    parser.add_argument("--format", choices=files.FORMATS, default="csv", help="of the export")
    parser.set_defaults(func=run_replay)


def run_tune(arguments: argparse.Namespace) -> int:
    """Tune one kernel and print what was found."""
    description = described(arguments.file)
    trials: list[Trial] = []
    plan = _plan(arguments, description)
    space = description.kernel.space
    name, budget = description.kernel.name, plan.budget.trials
    print(f"{name}: {space.size} configurations of {space.width} knobs, {budget} trials")
    result = tune(description.kernel, plan, trials.append)
    _print_result(result)
    if arguments.export:
        files.write(recording_of(description.kernel.name, space, trials), arguments.export, arguments.format)
        print(f"{len(trials)} trials written to {arguments.export}")
    return 0


def _plan(arguments: argparse.Namespace, description: Description) -> Plan:
    given = description.tuning
    policy = MeasuringPolicy()
    wanted = {key: float(given[key]) for key in ("build_timeout_s", "run_timeout_s") if key in given}
    trials = given.get("trials", _TRIALS) if arguments.trials is None else arguments.trials
    if not isinstance(trials, int):
        raise BudgetError(f"trials must be a whole number, got {trials!r}")
    return Plan(
        budget=Budget(trials=trials, seconds=arguments.seconds),
        seed=arguments.seed,
        search=arguments.search,
        init=arguments.init,
        spare=arguments.spare,
        presample=arguments.presample,
        policy=replace(policy, **wanted),  # type: ignore[arg-type]
    )


def _print_result(result: KernelResult) -> None:
    print(
        f"best: {result.seconds * 1e3:.6g} ms with " + ", ".join(f"{k}={v}" for k, v in result.best.items())
    )
    failed = sum(isinstance(trial.outcome, Failure) for trial in result.trials)
    kinds = ", ".join(f"{count} {kind.value}" for kind, count in result.failures.most_common())
    detail = f" ({kinds})" if kinds else ""
    print(f"{len(result.trials)} trials in {result.elapsed_s:.1f} s, {failed} failed{detail}")
    if result.relevance:
        ranked = sorted(result.relevance.items(), key=lambda item: -item[1])
        print("knobs by how much they matter: " + ", ".join(f"{name} {share:.0%}" for name, share in ranked))
    if result.presampling_s:
        print(f"presampling took {result.presampling_s:.1f} s of that")


def run_replay(arguments: argparse.Namespace) -> int:
    """Replay on every file and print a table for each."""
    if arguments.seeds < 1:
        raise BudgetError(f"at least 1 seed is needed, got {arguments.seeds}")
    trials = Budget(trials=_TRIALS if arguments.trials is None else arguments.trials).trials
    if arguments.export and len(arguments.files) > 1:
        raise RecordsError("an export takes one recording; give one file")
    for path in arguments.files:
        recording = files.read(path)
        recording = recording.stressed() if arguments.stress else recording
        _print_recording(recording)
        for summary in _summaries(arguments, recording, trials):
            _print_summary(summary)
        if arguments.export:
            files.write(recording, arguments.export, arguments.format)
    return 0


def _summaries(arguments: argparse.Namespace, recording: Recording, trials: int) -> list[Summary]:
    seeds, start = range(arguments.seeds), Start(arguments.init)
    runs = [replayed(recording, arguments.search, seed, trials, start) for seed in seeds]
    found = [summarised(recording, f"tuneloom {arguments.search}", runs)]
    if arguments.compare:
        opponent = KernelTunerSimulation(recording)
        for strategy in arguments.strategies or STRATEGIES:
            theirs = [opponent.run(strategy, seed, trials) for seed in seeds]
            found.append(summarised(recording, strategy, theirs))
    return found


def _print_recording(recording: Recording) -> None:
    kinds = ", ".join(f"{count} {kind.value}" for kind, count in recording.failures().most_common())
    repeated = f", {recording.repeated} repeated rows left out" if recording.repeated else ""
    print(f"{recording.name}: {recording.size} configurations, {recording.invalid_share:.1%} invalid", end="")
    print(f"{f' ({kinds})' if kinds else ''}{repeated}")
    print(f"best {recording.best_ms:.6g} ms, {recording.within(0.05)} within 5 %")
    points = "".join(f"{f'at {n}':>9}" for n in CHECKPOINTS)
    print(f"{'search':<26}{'runs':>5}{'to 5 %':>9}{points}{'invalid':>9}")


def _print_summary(summary: Summary) -> None:
    close = "-" if summary.to_close == inf else f"{summary.to_close:g}"
    bests = "".join(f"{summary.best[n]:>9.3f}" for n in CHECKPOINTS)
    print(f"{summary.search:<26}{summary.runs:>5}{close:>9}{bests}{summary.invalid_share:>9.1%}")
