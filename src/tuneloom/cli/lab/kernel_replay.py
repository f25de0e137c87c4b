"""`tuneloom kernel replay`: searches on recorded spaces, where a trial takes milliseconds."""

import argparse
import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict, replace
from math import inf, isfinite
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tuneloom.cli.job_options import add_job_options, fields_named
from tuneloom.cli.parsing import Commands, add_command, count, seed
from tuneloom.errors import InputError, RecordsError
from tuneloom.tuners.kernel import SEARCHES, STARTS

if TYPE_CHECKING:
    from tuneloom.tuners.replay.recording import Recording
    from tuneloom.tuners.replay.study import Summary

_TRIALS = 200
REPLAY = """\
Run searches on recorded spaces: cache files of Kernel Tuner, output of KTT, T4 results, or
Tuneloom's CSV. Prints the median number of trials needed to get within 5 % of the optimum,
the median best after 25, 50, 100 and 200 trials relative to the optimum, and the fraction of
trials spent on invalid points.

  tuneloom kernel replay pnpoly.csv.gz --seeds 80
  tuneloom kernel replay pnpoly.csv.gz --seeds 80 --compare kernel-tuner

With --explain, one run is printed trial by trial: why each point was chosen, the expected time,
the promised improvement, the risk of failure and the result; then where the search was stuck,
and what it was promised meanwhile.

  tuneloom kernel replay pnpoly.csv.gz --explain 3
"""


def add_parser(commands: Commands, formats: Sequence[str]) -> None:
    """Add the command to its group."""
    parser = add_command(
        commands, "replay", REPLAY, run_replay, help="run searches on recorded spaces", json="print JSON"
    )
    parser.add_argument("files", type=Path, nargs="+", metavar="FILE", help="a recorded space")
    add_job_options(parser, fields_named("search", "init"))
    parser.set_defaults(search=SEARCHES[0], init=STARTS[0])
    parser.add_argument(
        "--trials", type=count, default=_TRIALS, metavar="N", help=f"trials per run (default: {_TRIALS})"
    )
    parser.add_argument(
        "--seeds",
        type=count,
        default=20,
        metavar="N",
        help="number of runs, each with its own seed (default: 20; use 80 for comparisons)",
    )
    parser.add_argument("--compare", choices=["kernel-tuner"], help="also run the strategies of this tuner")
    parser.add_argument(
        "--strategies", nargs="+", metavar="NAME", help="strategies of the other tuner (default: all)"
    )
    parser.add_argument(
        "--stress",
        action="store_true",
        help="treat every point of the grid that was not recorded as a failure",
    )
    parser.add_argument(
        "--explain",
        type=seed,
        nargs="?",
        const=0,
        metavar="SEED",
        help="explain every choice of the run with this random seed (default: 0)",
    )
    parser.add_argument("--export", type=Path, metavar="FILE", help="write the recording to this file")
    parser.add_argument(
        "--format", choices=formats, default="csv", help="format of the export (default: csv)"
    )


def run_replay(arguments: argparse.Namespace) -> int:
    """Replay on every file and print a table for each."""
    from tuneloom.tuners.replay import files

    if arguments.export and len(arguments.files) > 1:
        raise RecordsError("an export takes one recording; give one file")
    _strategies(arguments.strategies)
    if arguments.explain is not None:
        return _explain(arguments)
    found: list[Summary] = []
    for recording in _recordings(arguments):
        found += (summaries := _summaries(arguments, recording))
        if not arguments.json:
            _print_recording(recording)
            for summary in summaries:
                _print_summary(summary)
        if arguments.export:
            files.write(recording, arguments.export, arguments.format)
    if arguments.json:
        print(json.dumps([summary_json(summary) for summary in found], indent=2))
    return 0


def _recordings(arguments: argparse.Namespace) -> "Iterator[Recording]":
    from tuneloom.tuners.replay import files

    for path in arguments.files:
        recording = files.read(path)
        yield recording.stressed() if arguments.stress else recording


def _explain(arguments: argparse.Namespace) -> int:
    from tuneloom.cli.lab.kernel_explain import explained_json, explanation
    from tuneloom.tuners.kernel.search.terms import StartingPoint, Terms
    from tuneloom.tuners.replay.study import explained

    terms = Terms(arguments.explain, StartingPoint(arguments.init), arguments.trials)
    told = []
    for recording in _recordings(arguments):
        steps = explained(recording, arguments.search, terms)
        if arguments.json:
            told.append({"recording": recording.name, **explained_json(recording, steps)})
            continue
        print(_headline(recording))
        print(*explanation(recording, steps), sep="\n")
    if arguments.json:
        print(json.dumps(told, indent=2))
    return 0


def summary_json(summary: "Summary") -> dict[str, Any]:
    """A summary as data; what is infinite, because runs did not arrive, is null."""
    found = asdict(summary)
    found["best"] = {count: _finite(best) for count, best in summary.best.items()}
    return {key: _finite(value) for key, value in found.items()}


def _finite(value: Any) -> Any:
    return None if isinstance(value, float) and not isfinite(value) else value


def _summaries(arguments: argparse.Namespace, recording: "Recording") -> "list[Summary]":
    from tuneloom.tuners.kernel.search.terms import StartingPoint, Terms
    from tuneloom.tuners.replay.study import replayed, summarised

    seeds, start, trials = range(arguments.seeds), StartingPoint(arguments.init), arguments.trials
    runs = [replayed(recording, arguments.search, Terms(seed, start, trials)) for seed in seeds]
    found = [summarised(recording, f"tuneloom {arguments.search}", runs)]
    if arguments.compare:
        from tuneloom.tuners.replay.opponent import KernelTunerSimulation

        opponent = KernelTunerSimulation(recording)
        for strategy in _strategies(arguments.strategies):
            theirs = [opponent.run(strategy, seed, trials) for seed in seeds]
            found.append(summarised(recording, strategy, theirs))
    return [_as_far_as(trials, summary) for summary in found]


def _as_far_as(trials: int, summary: "Summary") -> "Summary":
    """A summary that says nothing of what comes after the last trial."""
    return replace(summary, best={n: best if n <= trials else inf for n, best in summary.best.items()})


def _strategies(named: Sequence[str] | None) -> Sequence[str]:
    from tuneloom.tuners.replay.opponent import STRATEGIES

    for name in named or ():
        if name not in STRATEGIES:
            raise InputError(f"Kernel Tuner has no strategy {name!r}; known: {', '.join(STRATEGIES)}")
    return named or STRATEGIES


def _headline(recording: "Recording") -> str:
    kinds = ", ".join(f"{count} {kind.value}" for kind, count in recording.failures().most_common())
    repeated = f", {recording.repeated} repeated rows skipped" if recording.repeated else ""
    failed = f"{recording.invalid_share:.1%} invalid{f' ({kinds})' if kinds else ''}"
    return (
        f"{recording.name}: {recording.size} configurations, {failed}{repeated}\n"
        f"best {recording.best_ms:.6g} ms, {recording.within(0.05)} within 5 %"
    )


def _print_recording(recording: "Recording") -> None:
    print(_headline(recording))
    from tuneloom.tuners.replay.study import CHECKPOINTS

    points = "".join(f"{f'at {n}':>9}" for n in CHECKPOINTS)
    print(f"{'search':<26}{'runs':>5}{'to 5 %':>9}{points}{'invalid':>9}")


def _print_summary(summary: "Summary") -> None:
    close = "-" if summary.to_close == inf else f"{summary.to_close:g}"
    bests = "".join(f"{best:>9.3f}" if best < inf else f"{'-':>9}" for best in summary.best.values())
    print(f"{summary.search:<26}{summary.runs:>5}{close:>9}{bests}{summary.invalid_share:>9.1%}")
