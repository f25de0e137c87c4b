"""Results of a grid become tables and a page."""

import csv
import io
import re
from pathlib import Path
from typing import Any

import pytest

from tuneloom.app.grids import running as superb_running
from tuneloom.app.grids.grid import Combination, Grid
from tuneloom.app.grids.running import RunResult, known_result
from tuneloom.app.grids.superb import aggregate_rows, as_csv, grid_data, run_rows, superb, write_results
from tuneloom.report.superb.page import render_grid


@pytest.fixture
def grid(tmp_path: Path) -> Grid:
    varied = {"models": ["zoo:squeezenet", ["a.onnx", "<b>.onnx"]], "seed": [0, 1]}
    return Grid(path=tmp_path / "study.toml", fixed={"trials": 24}, varied=varied)


def figures(seed: int) -> dict[str, Any]:
    return {
        "run": "amber-heron-42",
        "tuning_s": 10.0 + 2 * seed,
        "stage_s": {"build": 4.0, "profile": 6.0 + seed},
        "busy": {"host": 0.5, "cpu0": 0.9},
        "latency_before_s": 0.010,
        "latency_after_s": 0.005,
        "speed_up": 2.0,
        "trials": 30,
        "failed": 3,
        "failures": {"build_error": 3},
        "canary_s": [1e-5, 3e-5, 2e-5],
    }


def result_of(combination: Combination) -> RunResult:
    seed = combination.parameters["seed"]
    several = len(combination.models) > 1
    status = "failed" if several and seed else "finished"
    return RunResult(
        combination=combination,
        status=status,
        message="no model at a.onnx" if status == "failed" else "",
        wall_s=20.0,
        figures={} if status == "failed" else figures(seed),
    )


def results_of(grid: Grid) -> list[RunResult]:
    return [result_of(combination) for combination in grid.combinations()]


def test_there_is_a_row_for_every_run(grid: Grid) -> None:
    rows = list(csv.DictReader(io.StringIO(as_csv(run_rows(grid, results_of(grid))))))
    assert [row["status"] for row in rows] == ["finished", "finished", "finished", "failed"]
    assert rows[0]["models"] == "zoo:squeezenet" and rows[2]["models"] == "a.onnx+<b>.onnx"
    assert (rows[1]["tuning_s"], rows[1]["build_s"], rows[1]["profile_s"]) == ("12", "4", "7")
    assert (rows[0]["latency_before_ms"], rows[0]["latency_after_ms"]) == ("10", "5")
    assert (rows[0]["trials"], rows[0]["trials_made"], rows[0]["failed_build_error"]) == ("24", "30", "3")
    assert (rows[0]["busy_cpu0"], rows[0]["canary_us"]) == ("0.9", "20")
    assert rows[3]["message"] == "no model at a.onnx" and rows[3]["tuning_s"] == ""


def test_seeds_are_averaged(grid: Grid) -> None:
    first, second = aggregate_rows(grid, run_rows(grid, results_of(grid)))
    assert (first["runs"], first["finished"], second["runs"], second["finished"]) == (2, 2, 2, 1)
    assert first["tuning_s_mean"] == 11.0
    assert first["tuning_s_sd"] == pytest.approx(2**0.5)
    assert (first["profile_s_mean"], first["speed_up_mean"]) == (6.5, 2.0)
    assert second["tuning_s_sd"] is None
    assert "seed" not in first


def test_the_page_shows_groups_runs_and_failures(grid: Grid) -> None:
    page = render_grid(grid_data(grid, results_of(grid)))
    titles = [
        "Tuning time",
        "Where the time went",
        "Latency after tuning",
        "Speed-up",
        "Latency against tuning time",
    ]
    assert re.findall(r"<section[^>]*><h2>([^<]*)</h2>", page) == [*titles, "All runs"]
    assert "3 of 4 runs finished" in page
    assert "no model at a.onnx" in page
    assert "&lt;b&gt;.onnx" in page and "<b>.onnx" not in page


def test_the_page_needs_nothing_from_outside(grid: Grid) -> None:
    page = render_grid(grid_data(grid, results_of(grid))).replace("http://www.w3.org/2000/svg", "")
    assert not re.search(r"https?://|src=|@import", page)


def test_a_grid_without_a_finished_run_has_a_page_too(grid: Grid) -> None:
    broken = [
        RunResult(combination=c, status="failed", message="x", wall_s=1.0, figures={})
        for c in grid.combinations()
    ]
    page = render_grid(grid_data(grid, broken))
    assert re.findall(r"<section[^>]*><h2>([^<]*)</h2>", page) == ["All runs"]


def test_results_survive_their_file(grid: Grid) -> None:
    results = results_of(grid)
    assert results and [RunResult.from_json(result.to_json()) for result in results] == list(results)


def test_a_second_start_runs_only_what_is_missing(
    grid: Grid, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[str] = []

    def carried_out(arguments: list[str], place: Path, limit_s: float | None) -> tuple[str, str]:
        made.append(place.name)
        return ("failed", "no memory") if len(made) == 2 else ("finished", "")

    monkeypatch.setattr(superb_running, "_carry_out", carried_out)
    folder = tmp_path / "out"
    assert [result.status for result in superb(grid, folder, lambda *_: None)] == [
        *("finished", "failed", "finished", "finished")
    ]
    earlier: list[bool] = []
    superb(grid, folder, lambda _number, _result, known: earlier.append(known))
    ids = [combination.id for combination in grid.combinations()]
    assert made == [*ids, ids[1]]
    assert earlier == [True, False, True, True]
    assert len((folder / "results.csv").read_text().splitlines()) == 5
    assert len((folder / "aggregate.csv").read_text().splitlines()) == 3


def test_a_torn_result_counts_as_missing(grid: Grid, tmp_path: Path) -> None:
    combination = next(grid.combinations())
    place = tmp_path / "runs" / combination.id
    place.mkdir(parents=True)
    (place / "result.json").write_text('{"parameters": {')
    assert known_result(tmp_path, combination) is None


def test_tables_are_written_whole(grid: Grid, tmp_path: Path) -> None:
    write_results(grid, tmp_path, results_of(grid))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["aggregate.csv", "index.html", "results.csv"]
