"""The files that the documentation shows can be read."""

from pathlib import Path

from tuneloom.app.grids.grid import read_grid
from tuneloom.app.requests.jobs_file import read_jobs

EXAMPLES = Path(__file__).parents[3] / "examples"


def test_the_jobs_of_the_example() -> None:
    jobs = read_jobs(EXAMPLES / "jobs.toml")
    assert [job.name for job in jobs] == ["squeezenet", "mobile", "resnet18"]
    assert {job.budget.trials for job in jobs} == {400}


def test_the_grid_of_the_example() -> None:
    assert read_grid(EXAMPLES / "grid.toml").count == 12
