"""`tuneloom replay-log`: were a run's scheduling decisions what its events ask for?"""

import argparse
from typing import TYPE_CHECKING, Any

from tuneloom.cli.parsing import Commands, add_command, add_run, tell

if TYPE_CHECKING:
    from tuneloom.scheduling.replaying import Difference, Replay

DESCRIPTION = """\
Replay the scheduling of a run from its log: every logged event is fed to a new scheduler,
whose decisions are compared with the logged ones. They are the same unless the scheduler
has been changed since, or has a bug.

    tuneloom replay-log last          the newest run

The exit code is 1 if a decision differs.
"""


def add_parser(subparsers: Commands) -> None:
    """Add the command to the program."""
    parser = add_command(subparsers, "replay-log", DESCRIPTION, replay_run, store=True, json="print JSON")
    add_run(parser)


def replay_run(options: argparse.Namespace) -> int:
    """Print how many decisions were equal, and where the others differ."""
    from tuneloom.app.runs.asking.log_replay import replay_log

    run, found = replay_log(options.run, options.store)
    tell(options, _data(run, found), *_lines(run, found), indent=2)
    return 1 if found.differences else 0


def _lines(run: str, found: "Replay") -> list[str]:
    count = len(found.differences)
    verdict = f"{count} different" if count else "none different"
    starts = f" over {found.cores} starts" if found.cores > 1 else ""
    lines = [f"{run}: {found.equal} decisions equal, {verdict}{starts}"]
    if found.unlogged:
        lines.append(f"{found.unlogged} decisions were logged without their commands")
    if found.skipped:
        lines.append(f"{found.skipped} decisions after a difference were not compared")
    for difference in found.differences:
        lines += _difference_lines(difference)
    return lines


def _difference_lines(difference: "Difference") -> list[str]:
    event = difference.event
    return [
        f"entry {difference.number}, {type(event).__name__} at {event.at_s:.3f} s:",
        f"  logged:   {_told(difference.logged)}",
        f"  replayed: {difference.error or _told(difference.replayed)}",
    ]


def _told(commands: tuple[tuple[Any, ...], ...]) -> str:
    return "; ".join(" ".join(str(part) for part in command) for command in commands) or "nothing"


def _data(run: str, found: "Replay") -> dict[str, Any]:
    return {
        "run": run,
        "starts": found.cores,
        "equal": found.equal,
        "skipped": found.skipped,
        "unlogged": found.unlogged,
        "differences": [
            {
                "entry": each.number,
                "event": type(each.event).__name__,
                "at_s": each.event.at_s,
                "logged": each.logged,
                "replayed": each.replayed,
                "error": each.error,
            }
            for each in found.differences
        ],
    }
