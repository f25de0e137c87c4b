"""A grid of real runs: failures and hangs cost themselves only, a second start goes on."""

import csv
from pathlib import Path

import pytest

from tuneloom.app.grids.grid import Combination
from tuneloom.app.grids.running import run_combination
from tuneloom.cli.main import main

pytestmark = pytest.mark.integration

GRID = """
[grid]
models = [{models}]

[fixed]
trials = 8
"""
GOOD, BAD, OTHER = "mock:size=8,build=0.01", "mock:size=8,zebra=1", "mock:size=9"


def write(grid: Path, *models: str) -> None:
    grid.write_text(GRID.format(models=", ".join(f'"{model}"' for model in models)))


def rows(folder: Path) -> list[dict[str, str]]:
    with (folder / "results.csv").open() as file:
        return list(csv.DictReader(file))


def test_a_grid_goes_on_after_failures_and_skips_what_is_finished(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    grid, out = tmp_path / "grid.toml", tmp_path / "out"
    write(grid, BAD, GOOD)
    assert main(["superb", str(grid), "-o", str(out)]) == 1
    failed, finished = rows(out)
    assert (failed["status"], finished["status"]) == ("failed", "finished")
    assert "a mock model has no 'zebra'" in failed["message"]
    assert finished["trials_made"] == "8" and float(finished["build_s"]) >= 0.08
    assert float(finished["speed_up"]) >= 1
    assert "1 of 2 runs did not finish" in capsys.readouterr().err
    write(grid, GOOD, OTHER)
    assert main(["superb", str(grid), "-o", str(out)]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert ": earlier finished" in lines[0] and ": finished" in lines[1]
    assert rows(out)[0]["run"] == finished["run"]
    assert (out / "index.html").read_text().startswith("<!doctype html>")


def test_a_run_that_takes_too_long_is_ended(tmp_path: Path) -> None:
    endless = Combination({"models": "mock:build=3600", "build_timeout": 7200})
    result = run_combination(endless, tmp_path, tmp_path, limit_s=1.0)
    assert (result.status, result.message) == ("timed out", "ended after 1 s")
