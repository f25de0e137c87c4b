"""The live view tells what goes on, in 80 columns."""

import json
from dataclasses import replace
from io import StringIO
from typing import Any

import pytest
from rich.console import Console, RenderableType

from support.jobs.small import small_context
from tuneloom.app.kinds.tuner.kind import TaskListJob
from tuneloom.app.requests.job_specs import job_spec
from tuneloom.app.runs.view import JobPicture, ResourcePicture, RunView, job_picture, resource_pictures
from tuneloom.app.tasks.progress import TaskProgress
from tuneloom.app.tuning.task_tuning import TaskTuning
from tuneloom.cli.live import clock, failures_text, jobs_table, picture, resources_table
from tuneloom.model import Candidate, Failure, FailureKind, Measurement, Trial
from tuneloom.scheduling import CoreView, JobState, JobView, ResourceView, RunningView
from tuneloom.store import JobStatus
from tuneloom.tuners.mock.kernel import mock_tasks

WIDTH = 80


def job_of(name: str = "squeezenet", **values: Any) -> TaskListJob:
    spec = job_spec({"name": name, "model": "mock:tasks=2", "trials": 10, **values})
    return TaskListJob(small_context(spec, job=f"run.{name}", lanes=1))


def tuning(job: TaskListJob, *outcomes: Measurement | Failure, started_s: float = 0.0) -> TaskListJob:
    tasks = [TaskProgress(n, task) for n, task in enumerate(mock_tasks(job.spec.model))]
    for number, outcome in enumerate(outcomes):
        candidate = Candidate(key=str(number), configuration="{}")
        tasks[number % 2].add(Trial(candidate=candidate, outcome=outcome), None)
    job.tuning = TaskTuning(job.job, job.spec, tasks, lambda *_: None, lanes=1, workers=1)
    job.tuning.spending.started_s = started_s
    return job


def running(kind: str, lane: str = "1.0", job: str = "run.squeezenet") -> RunningView:
    return RunningView(job=job, stage="s", lane=lane, kind=kind, resource="host", slots=1, since_s=0.0)


def seen(state: JobState = JobState.RUNNING, *stages: RunningView, stranded: int = 0) -> JobView:
    return JobView(id="run.x", state=state, priority=0, waiting=0, stranded=stranded, running=stages)


def line_of(
    job: TaskListJob, core: JobView | None, status: JobStatus, now_s: float, due_s: float = 0.0
) -> JobPicture:
    return job_picture(job, job.progress(now_s), core, status, due_s - now_s)


def pictures(core: CoreView, job: TaskListJob) -> tuple[ResourcePicture, ...]:
    return resource_pictures(core, {job.job: (job.spec.name, job.progress(100.0))})


def drawn(shown: RenderableType, width: int = WIDTH) -> str:
    page = StringIO()
    Console(width=width, file=page).print(shown)
    text = page.getvalue()
    assert max(len(line) for line in text.splitlines()) <= width
    return text


def fast(seconds: float = 0.001) -> Measurement:
    return Measurement(seconds=(seconds,))


BROKEN = Failure(kind=FailureKind.BUILD_ERROR, message="no")


def test_resources_show_their_work_their_past_and_their_queue() -> None:
    job = tuning(job_of())
    host = ResourceView(
        name="host", key=None, slots=2, taken=2, busy_s=150.0, queue=12,
        running=(running("build"), running("build")),
    )  # fmt: skip
    device = ResourceView(name="cpu0", key="cpu", slots=1, taken=0, busy_s=20.0, queue=0, running=())
    core = CoreView(at_s=100.0, resources=(host, device), jobs=(), ended=0)
    lines = drawn(resources_table(pictures(core, job), WIDTH)).splitlines()
    assert "75%" in lines[1] and "12" in lines[1] and "2 × build squeezenet kernel-1" in lines[1]
    assert "20%" in lines[2] and lines[2].rstrip().endswith("idle")


def test_long_names_do_not_break_the_table() -> None:
    job = tuning(job_of("a-model-with-a-very-long-name-indeed"))
    stages = tuple(running(kind, job=job.job) for kind in ("build", "select", "update"))
    view = ResourceView(name="host", key=None, slots=3, taken=3, busy_s=1.0, queue=1, running=stages)
    core = CoreView(at_s=1.0, resources=(view,), jobs=(), ended=0)
    assert len(drawn(resources_table(pictures(core, job), WIDTH)).splitlines()) == 2


def test_a_job_shows_its_stage_trials_best_and_time_left() -> None:
    job = tuning(job_of(), fast(0.001), fast(0.002), BROKEN, fast(), started_s=10.0)
    stages = (running("build"), running("build"), running("profile"))
    line = line_of(job, seen(JobState.RUNNING, *stages), JobStatus.RUNNING, 50.0)
    assert line == JobPicture(
        id="run.squeezenet", name="squeezenet", status="running", stage="2 build, profile", measured=2,
        kernels=2, spent=4, budget=10, best_s=pytest.approx(0.003), failures={"build_error": 1},
        left_s=pytest.approx(60.0), ended=False,
    )  # fmt: skip
    text = drawn(jobs_table([line], rows=5, now=0.0, width=WIDTH))
    assert "2/2" in text and "4/10" in text and "3.00 ms" in text and "1:00" in text


def test_a_job_with_long_words_and_large_numbers_fits_into_the_width() -> None:
    line = JobPicture(
        id="run.1", name="a-model-with-a-very-long-name", status="running", stage="2 build, select, profile",
        measured=41, kernels=41, spent=9_999, budget=10_000, best_s=1.23456, failures={"run_error": 1_234},
        left_s=7_200.0, ended=False,
    )  # fmt: skip
    narrow, wide = (drawn(jobs_table([line], 5, 0.0, width), width) for width in (WIDTH, 110))
    assert "9999/10000" in narrow and "2:00:00" in narrow and "ends" not in narrow
    assert "ends" in wide.splitlines()[0]


@pytest.mark.parametrize(
    ("core", "status", "stage"),
    [
        (None, JobStatus.RUNNING, "comes in 25 s"),
        (seen(JobState.PAUSED), JobStatus.PAUSED, "paused"),
        (seen(JobState.PAUSING), JobStatus.PAUSED, "pausing"),
        (seen(JobState.WAITING), JobStatus.RUNNING, "waiting"),
        (seen(JobState.WAITING, stranded=1), JobStatus.RUNNING, "no device yet"),
        (None, JobStatus.FINISHED, "finished"),
        (None, JobStatus.CANCELLED, "cancelled"),
        (None, JobStatus.FAILED, "failed"),
    ],
)
def test_a_job_that_does_nothing_says_why(core: JobView | None, status: JobStatus, stage: str) -> None:
    line = line_of(job_of(), core, status, 5.0, due_s=30.0)
    assert (line.stage, line.left_s) == (stage, None)


def test_a_time_budget_bounds_the_time_left() -> None:
    job = tuning(job_of(seconds=12), fast(), fast())
    assert job.progress(10.0).left_s == pytest.approx(2.0)


def test_of_too_many_jobs_those_that_go_on_are_shown() -> None:
    lines = [
        line_of(job_of(f"job-{n}"), None, JobStatus.FINISHED if n < 20 else JobStatus.RUNNING, 0.0)
        for n in range(25)
    ]
    text = drawn(jobs_table(lines, rows=6, now=0.0))
    assert all(f"job-{n}" in text for n in range(20, 25))
    assert "and 19 more" in text


def test_failures_are_told_by_kind() -> None:
    lost = Failure(kind=FailureKind.WORKER_LOST)
    jobs = [tuning(job_of(), BROKEN, BROKEN, lost), tuning(job_of("other"), BROKEN)]
    lines = tuple(line_of(job, None, JobStatus.RUNNING, 0.0) for job in jobs)
    view = RunView(run="run", policy="load-aware", at_s=0.0, resources=(), jobs=lines)
    assert failures_text(view.failures).plain.strip() == "failed: 3 build_error, 1 worker_lost"
    assert "run · load-aware · 0:00" in drawn(picture(view, WIDTH, 4))
    assert failures_text({}).plain == ""


def test_a_view_is_plain_data() -> None:
    line = line_of(tuning(job_of(), BROKEN), seen(JobState.RUNNING), JobStatus.RUNNING, 0.0)
    view = RunView(run="run", policy="load-aware", at_s=1.0, resources=(), jobs=(line,))
    assert json.loads(json.dumps(view.to_json()))["jobs"][0]["failures"] == {"build_error": 1}


def test_times_are_read_like_a_clock() -> None:
    assert (clock(0), clock(200), clock(3765)) == ("0:00", "3:20", "1:02:45")


def test_a_view_looks_the_same_while_only_clocks_go_on() -> None:
    line = line_of(tuning(job_of(), BROKEN), seen(JobState.RUNNING), JobStatus.RUNNING, 0.0)
    host = ResourceView(name="host", key=None, slots=2, taken=0, busy_s=500.0, queue=0, running=())
    resources = pictures(CoreView(at_s=1000.0, resources=(host,), jobs=(), ended=0), job_of())
    view = RunView(run="run", policy="load-aware", at_s=1.0, resources=resources, jobs=(line,))
    later = replace(resources[0], utilisation=resources[0].utilisation * 0.99)
    assert replace(view, at_s=2.0, resources=(later,)).looks_like(view)
    assert not replace(view, jobs=(replace(line, spent=2),)).looks_like(view)
    assert not view.looks_like(None)
