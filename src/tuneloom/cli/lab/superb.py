"""`tuneloom superb`: every combination of a grid, run one after another without a human."""

import argparse
import sys
from pathlib import Path

from tuneloom.app.grids.grid import Grid, read_grid
from tuneloom.app.grids.running import RunResult
from tuneloom.app.grids.superb import AGGREGATE, PAGE, RESULTS, superb
from tuneloom.cli.parsing import Commands, add_command
from tuneloom.errors import InputError, TuneloomError
from tuneloom.report.drawing.units import duration

ASKS_ABOVE = 1000
DESCRIPTION = f"""\
Run every combination of the parameters in a grid file, one after another, each in its own
process and with its own store. When started again, it runs only what has
not finished yet.

  tuneloom superb grid.toml -o results/

writes results/{RESULTS} (one row per run), results/{AGGREGATE} (means and standard deviations
over seeds) and results/{PAGE} (charts). The grid is a TOML file:

  [grid]
  models = ["zoo:squeezenet", "zoo:resnet18"]
  policy = ["load-aware", "sequential"]
  seed = [0, 1, 2]

  [fixed]
  trials = 200
"""


def add_parser(subparsers: Commands) -> None:
    """Add the command to the program."""
    parser = add_command(subparsers, "superb", DESCRIPTION, run_superb)
    parser.add_argument("grid", type=Path, metavar="GRID.toml", help="the grid file")
    parser.add_argument(
        "-o", "--out", type=Path, metavar="DIR", help="output folder (default: named after the grid file)"
    )
    parser.add_argument(
        "--yes", action="store_true", help=f"start more than {ASKS_ABOVE:,} runs without asking"
    )
    parser.add_argument("--list", action="store_true", help="print the commands and exit")


def run_superb(options: argparse.Namespace) -> int:
    """Run the grid and say what came of every run."""
    grid = read_grid(options.grid)
    if options.list:
        for combination in grid.combinations():
            print(" ".join(["tuneloom", "tune", *combination.arguments(grid.path.parent)]))
        return 0
    require_meant(grid, yes=options.yes)
    folder = options.out or Path(grid.path.stem)
    results = superb(grid, folder, lambda *told: print(told_line(grid, *told), flush=True))
    failed = sum(not result.finished for result in results)
    print(f"{len(results) - failed} of {len(results)} runs finished; see {folder / PAGE}")
    if failed:
        raise TuneloomError(
            f"{failed} of {len(results)} runs did not finish; run the same command again to retry them"
        )
    return 0


def require_meant(grid: Grid, *, yes: bool) -> None:
    """Ask before a very large grid; raises InputError if nobody says yes."""
    if grid.count <= ASKS_ABOVE or yes:
        return
    lists = " × ".join(f"{len(values)} {name}" for name, values in grid.varied.items())
    large = f"{grid.path} has {grid.count:,} combinations ({lists})"
    if not sys.stdin.isatty():
        raise InputError(f"{large}; add --yes to run them all")
    if input(f"{large}. Run them all? [y/N] ").strip().lower() not in ("y", "yes"):
        raise InputError("nothing was run; shorten the lists in the grid file")


def told_line(grid: Grid, number: int, result: RunResult, known: bool) -> str:
    """One line about a run: which, and how it ended."""
    parameters = result.combination.parameters
    varied = " ".join(f"{name}={_short(parameters[name])}" for name in grid.varied)
    figures = result.figures
    ended = f"{result.status} in {duration(result.wall_s)}"
    if (gain := figures.get("speed_up")) is not None:
        after = duration(figures["latency_after_s"])
        ended += f", {figures['trials']} trials, {after}, {gain:.2f} times faster"
    if result.message:
        ended += f": {result.message}"
    return f"[{number}/{grid.count}] {varied}: {'earlier ' if known else ''}{ended}"


def _short(value: object) -> str:
    return "+".join(map(str, value)) if isinstance(value, list) else str(value)
