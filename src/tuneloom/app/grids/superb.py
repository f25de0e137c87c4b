"""A whole grid: run it, write its tables and its page."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tuneloom.app.grids.grid import SEEDS, Grid
from tuneloom.app.grids.running import RunListener, RunResult, run_grid
from tuneloom.app.grids.tables import aggregate_rows, as_csv, run_rows
from tuneloom.errors import OutputError
from tuneloom.report.superb.data import GridData, GridGroup, GridRun
from tuneloom.report.superb.page import render_grid

RESULTS, AGGREGATE, PAGE = "results.csv", "aggregate.csv", "index.html"


def superb(grid: Grid, folder: Path, listener: RunListener) -> list[RunResult]:
    """Run all combinations and keep the tables up to date after each, so that nothing waits for the end."""
    results: list[RunResult] = []

    def note(number: int, result: RunResult, known: bool) -> None:
        results.append(result)
        if not known or number == grid.count:
            write_results(grid, folder, results)
        listener(number, result, known)

    run_grid(grid, folder, note)
    return results


def write_results(grid: Grid, folder: Path, results: Sequence[RunResult]) -> None:
    """Write both tables and the page, each all or not at all."""
    rows = run_rows(grid, results)
    texts = {
        RESULTS: as_csv(rows),
        AGGREGATE: as_csv(aggregate_rows(grid, rows)),
        PAGE: render_grid(grid_data(grid, results)),
    }
    for name, text in texts.items():
        unfinished = folder / f".{name}"
        try:
            unfinished.write_text(text, encoding="utf-8")
            unfinished.replace(folder / name)
        except OSError as error:
            raise OutputError(f"can't write {folder / name}: {error.strerror}") from error


def grid_data(grid: Grid, results: Sequence[RunResult]) -> GridData:
    """What the page shows of a grid."""
    names = [name for name, values in grid.varied.items() if name != SEEDS and len(values) > 1]
    fixed = {name: values[0] for name, values in grid.varied.items() if len(values) == 1}
    groups: dict[tuple[str, ...], list[GridRun]] = {}
    for result in results:
        run = _grid_run(result, names)
        groups.setdefault(tuple(run.values.values()), []).append(run)
    return GridData(
        name=grid.path.stem,
        fixed={name: _shown(value) for name, value in {**grid.fixed, **fixed}.items() if name != SEEDS},
        groups=tuple(GridGroup(values=runs[0].values, runs=tuple(runs)) for runs in groups.values()),
    )


def _grid_run(result: RunResult, names: Sequence[str]) -> GridRun:
    parameters: Mapping[str, Any] = result.combination.parameters
    figures = result.figures
    return GridRun(
        values={name: _shown(parameters[name]) for name in names},
        seed=str(parameters.get(SEEDS, "")),
        status=result.status,
        message=result.message,
        tuning_s=figures.get("tuning_s") or None,
        before_s=figures.get("latency_before_s"),
        after_s=figures.get("latency_after_s"),
        speed_up=figures.get("speed_up"),
        trials=figures.get("trials", 0),
        failed=figures.get("failed", 0),
        stage_s=figures.get("stage_s", {}),
    )


def _shown(value: Any) -> str:
    return " + ".join(map(str, value)) if isinstance(value, list) else str(value)
