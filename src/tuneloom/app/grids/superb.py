"""A whole grid: run it, write its tables and its page."""

import csv
import io
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import mean, stdev
from typing import Any

from tuneloom.app.bundles.folders import write_whole
from tuneloom.app.grids.figures import median_or_none
from tuneloom.app.grids.grid import SEEDS, Grid
from tuneloom.app.grids.running import RunListener, RunResult, run_grid
from tuneloom.model import FailureKind, StageKind
from tuneloom.report.superb.data import GridData, GridGroup, GridRun
from tuneloom.report.superb.page import render_grid

Row = dict[str, Any]
STAGES = (*(kind.value for kind in StageKind), "canary")
FAILURES = tuple(kind.value for kind in FailureKind)
FIGURES = (
    "tuning_s",
    "wall_s",
    *(f"{stage}_s" for stage in STAGES),
    "latency_before_ms",
    "latency_after_ms",
    "speed_up",
    "trials_made",
    "failed",
)
"""Columns that are averaged over seeds."""


def run_rows(grid: Grid, results: Sequence[RunResult]) -> list[Row]:
    """One row for each run: its parameters, its state, its figures."""
    resources = sorted({name for result in results for name in result.figures.get("busy", {})})
    return [_row(grid, result, resources) for result in results]


def _row(grid: Grid, result: RunResult, resources: Sequence[str]) -> Row:
    figures = result.figures
    stages: Mapping[str, float] = figures.get("stage_s", {})
    failures: Mapping[str, int] = figures.get("failures", {})
    busy: Mapping[str, float] = figures.get("busy", {})
    return {
        "combination": result.combination.id,
        **{name: result.combination.parameters.get(name) for name in grid.names},
        "status": result.status,
        "message": result.message,
        "run": figures.get("run"),
        "tuning_s": figures.get("tuning_s"),
        "wall_s": result.wall_s,
        **{f"{stage}_s": stages.get(stage, 0.0) if figures else None for stage in STAGES},
        "latency_before_ms": _ms(figures.get("latency_before_s")),
        "latency_after_ms": _ms(figures.get("latency_after_s")),
        "speed_up": figures.get("speed_up"),
        "trials_made": figures.get("trials"),
        "failed": figures.get("failed"),
        **{f"failed_{kind}": failures.get(kind, 0) if figures else None for kind in FAILURES},
        **{f"busy_{name}": busy.get(name) for name in resources},
        "canary_us": _us(median_or_none(figures.get("canary_s", ()))),
    }


def aggregate_rows(grid: Grid, rows: Sequence[Row]) -> list[Row]:
    """Means and spreads over the seeds of finished runs that are otherwise alike."""
    names = [name for name in grid.names if name != SEEDS]
    groups: dict[str, list[Row]] = {}
    for row in rows:
        groups.setdefault(repr([row[name] for name in names]), []).append(row)
    return [_aggregate(names, group) for group in groups.values()]


def _aggregate(names: Sequence[str], group: Sequence[Row]) -> Row:
    finished = [row for row in group if row["status"] == "finished"]
    row: Row = {name: group[0][name] for name in names}
    row |= {"runs": len(group), "finished": len(finished)}
    for figure in FIGURES:
        values = [each[figure] for each in finished if each[figure] is not None]
        row[f"{figure}_mean"] = mean(values) if values else None
        row[f"{figure}_sd"] = stdev(values) if len(values) > 1 else None
    return row


def as_csv(rows: Sequence[Row]) -> str:
    """Rows as CSV; what is not known is left empty, lists are joined by `+`."""
    text = io.StringIO()
    writer = csv.DictWriter(text, list(rows[0]) if rows else [], lineterminator="\n")
    writer.writeheader()
    for row in rows:
        writer.writerow({name: _cell(value) for name, value in row.items()})
    return text.getvalue()


def _cell(value: Any) -> Any:
    if isinstance(value, list):
        return "+".join(map(str, value))
    return f"{value:.6g}" if isinstance(value, float) else value


def _ms(seconds: float | None) -> float | None:
    return None if seconds is None else seconds * 1e3


def _us(seconds: float | None) -> float | None:
    return None if seconds is None else seconds * 1e6


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
        write_whole(folder / name, text)


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
