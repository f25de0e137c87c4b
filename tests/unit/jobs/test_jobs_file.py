"""A jobs file becomes jobs, and whatever is wrong with it is named with its line."""

from pathlib import Path

import pytest

from tuneloom.app.requests.jobs_file import read_jobs
from tuneloom.errors import JobsFileError
from tuneloom.model import JobSpec

FULL = """
[defaults]
trials = 200
device = "cpu"

[[jobs]]
model = "zoo:squeezenet"
priority = 5
deadline_s = 600
out = "fast/squeezenet"

[[jobs]]
name = "mine"
model = "nets/mine.onnx"
trials = 64
seconds = 30.5
goal_ms = 4
arrival_s = 10
batch = 8
seed = 3
run_timeout_s = 2
build_timeout_s = 4
waits_for_devices = true
shapes = { input = [1, 3, 224, 224] }

[[jobs]]
model = "zoo:squeezenet"
"""


def jobs_of(folder: Path, text: str) -> list[JobSpec]:
    path = folder / "jobs.toml"
    path.write_text(text)
    return read_jobs(path)


def complaint(folder: Path, text: str) -> str:
    with pytest.raises(JobsFileError) as caught:
        jobs_of(folder, text)
    return str(caught.value).removeprefix(f"{folder}/")


def test_jobs_have_their_own_values_and_the_defaults(tmp_path: Path) -> None:
    first, second, third = jobs_of(tmp_path, FULL)
    assert (first.budget.trials, second.budget.trials, third.budget.trials) == (200, 64, 200)
    assert (first.priority, first.deadline_s, second.priority) == (5, 600, 0)
    assert (second.budget.seconds, second.budget.goal_ms, second.arrival_s) == (30.5, 4, 10)
    assert (second.batch, second.seed, second.waits_for_devices) == (8, 3, True)
    assert (second.measuring.run_timeout_s, second.measuring.build_timeout_s) == (2, 4)
    assert second.shapes == {"input": (1, 3, 224, 224)}


def test_paths_count_from_the_folder_of_the_file(tmp_path: Path) -> None:
    first, second, third = jobs_of(tmp_path, FULL)
    assert second.model == str(tmp_path / "nets/mine.onnx")
    assert first.out == str(tmp_path / "fast/squeezenet")
    assert third.out is None


def test_jobs_without_a_name_are_called_after_their_model(tmp_path: Path) -> None:
    assert [job.name for job in jobs_of(tmp_path, FULL)] == ["squeezenet", "mine", "squeezenet-2"]


def test_the_command_line_fills_what_the_file_leaves_open(tmp_path: Path) -> None:
    path = tmp_path / "jobs.toml"
    path.write_text('[defaults]\ntrials = 5\n[[jobs]]\nmodel = "zoo:squeezenet"\n')
    (job,) = read_jobs(path, {"trials": 7, "seed": 9})
    assert (job.budget.trials, job.seed) == (5, 9)


def test_jobs_survive_the_store(tmp_path: Path) -> None:
    jobs = jobs_of(tmp_path, FULL)
    assert jobs and [JobSpec.from_json(job.to_json()) for job in jobs] == list(jobs)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", "jobs.toml, line 1: no jobs; begin each with [[jobs]] and give it a model"),
        ("[defaults]\n\njobs = []", "jobs.toml, line 3: unknown key 'jobs'"),
        ("\njobs = []", "jobs.toml, line 2: no jobs"),
        ('[[job]]\nmodel = "a"', "jobs.toml, line 1: unknown key 'job'; did you mean 'jobs'?"),
        ("[[jobs]]\nseed = 1", "jobs.toml, line 1: this job has no model; give a file or zoo:NAME"),
        ('[[jobs]]\nmodel = "a"\ntrails = 5', "line 3: unknown key 'trails'; did you mean 'trials'?"),
        ('[defaults]\nmodel = "a"\n', "jobs.toml, line 2: unknown key 'model'"),
        ("[defaults]\nzebra = 1\n", "jobs.toml, line 2: unknown key 'zebra'; known: tuner, target, device, "),
        ('[[jobs]]\nmodel = "a"\n\ntrials = "5"', "line 4: 'trials' must be a whole number of at least 0"),
        (
            '[[jobs]]\nmodel = "a"\ntrials = -1',
            "line 3: 'trials' must be a whole number of at least 0, got -1",
        ),
        ('[[jobs]]\nmodel = "a"\ntrials = true', "line 3: 'trials' must be a whole number"),
        ('[[jobs]]\nmodel = "a"\nseconds = nan', "line 3: 'seconds' must be a number above 0, got nan"),
        ('[[jobs]]\nmodel = "a"\nshapes = { x = [] }', "line 3: 'shapes' must be a table of lists"),
        ('[[jobs]]\nmodel = "a"\n[jobs.shapes]\nx = [0]', "line 3: 'shapes' must be a table of lists"),
        ('[[jobs]]\nmodel = ["a"]', "line 2: 'model' must be text, got ['a']"),
        (
            '[[jobs]]\nname = "x"\nmodel = "a"\n[[jobs]]\nname = "x"\nmodel = "b"',
            "line 5: two jobs are named",
        ),
        (
            '[[jobs]]\nmodel = "a"\nout = "x"\n[[jobs]]\nout = "x"\nmodel = "b"',
            "line 5: two jobs write to 'x'",
        ),
        ("defaults = 3\n[[jobs]]\n", "jobs.toml, line 1: 'defaults' must be a table, got 3"),
        ("jobs = [1]", "jobs.toml, line 1: a job must be a table, got 1"),
        ('[[jobs]]\nmodel = "a\n', "jobs.toml, line 2: illegal character"),
        ("[[jobs]]\nmodel = 1\nmodel = 2\n", "jobs.toml, line 3: cannot overwrite a value"),
    ],
)
def test_errors_name_the_line_and_the_remedy(tmp_path: Path, text: str, expected: str) -> None:
    assert expected in complaint(tmp_path, text)


def test_the_second_of_two_equal_names_points_to_the_first(tmp_path: Path) -> None:
    text = '[[jobs]]\nname = "x"\nmodel = "a"\n\n[[jobs]]\nmodel = "b"\nname = "x"\n'
    assert complaint(tmp_path, text) == "jobs.toml, line 7: two jobs are named 'x', see line 2"


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(JobsFileError, match=r"can't read .*nowhere\.toml: No such file"):
        read_jobs(tmp_path / "nowhere.toml")


def test_samples_count_from_the_folder_of_the_file_wherever_they_are_given(tmp_path: Path) -> None:
    int8 = 'model = "net.onnx"\ndtype = "int8"\n'
    (own,) = jobs_of(tmp_path, f'[[jobs]]\n{int8}samples = "s/own.npz"\n')
    (shared,) = jobs_of(tmp_path, f'[defaults]\nsamples = "all.npz"\n[[jobs]]\n{int8}')
    assert own.samples == str(tmp_path / "s/own.npz")
    assert shared.samples == str(tmp_path / "all.npz")


def test_values_that_do_not_go_together_are_told_with_the_line_of_their_job(tmp_path: Path) -> None:
    told = complaint(tmp_path, '[[jobs]]\nmodel = "a.onnx"\n[[jobs]]\nmodel = "b.onnx"\ndtype = "int8"\n')
    assert told == "jobs.toml, line 3: dtype int8 needs --samples FILE.npz"
