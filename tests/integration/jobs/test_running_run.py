"""Jobs are added to, paused in and taken from a run that another process carries out."""

import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest

from support.commands import Workplace, ended_afterwards
from support.warm import WarmInterpreter
from tuneloom.app.reports.stage_times import stage_times
from tuneloom.app.requests.job_specs import job_spec
from tuneloom.app.runs.asking import control as job_control
from tuneloom.cli.main import main
from tuneloom.errors import InputError, TargetError
from tuneloom.model import JobSpec
from tuneloom.simulation import load_recorded
from tuneloom.store import JobRecord, JobStatus, RunStatus, Store, open_store

pytestmark = pytest.mark.integration

ENDLESS = "mock:size=1000000,build=0.01,profile=0.01"
PATIENCE_S = 300.0
JOBS = f"""
[defaults]
batch = 4

[[jobs]]
name = "long"
model = "{ENDLESS}"
trials = 1000000

[[jobs]]
name = "tomorrow"
model = "mock:"
arrival_s = 86400
"""


class Running:
    """A run in a process of its own."""

    def __init__(self, folder: Path, warm: WarmInterpreter) -> None:
        self.place = str(folder / "store.db")
        (folder / "jobs.toml").write_text(JOBS)
        arguments = ["tune", "--jobs", str(folder / "jobs.toml"), "--store", self.place, "--quiet"]
        self.process = Workplace(folder=folder, warm=warm).start(*arguments)
        self.store: Store = open_store(self.place)
        self.until(lambda: self.trials("long") > 0)

    def job(self, name: str) -> JobRecord | None:
        return next((job for job in self._jobs() if job.name == name), None)

    def trials(self, name: str) -> int:
        job = self.job(name)
        return self.store.trial_count(job.id) if job else 0

    def status(self, name: str) -> JobStatus | None:
        job = self.job(name)
        return job.status if job else None

    def stage(self, name: str) -> str:
        """What a job does, as people see it."""
        view = self.store.view(self.store.runs(1)[0].id) or {}
        return next((job["stage"] for job in view.get("jobs", ()) if job["name"] == name), "")

    def until(self, condition: Callable[[], bool]) -> None:
        """Wait for something to happen while the run goes on."""
        end_s = time.monotonic() + PATIENCE_S
        while not condition():
            assert time.monotonic() < end_s, "it never happened"
            try:
                code = self.process.wait(0.05)
            except subprocess.TimeoutExpired:
                continue
            assert condition(), f"the run ended with {code} before it happened"
            return

    def _jobs(self) -> list[JobRecord]:
        runs = self.store.runs(1)
        return self.store.jobs(runs[0].id) if runs else []


@pytest.fixture
def running(tmp_path: Path, warm: WarmInterpreter) -> Iterator[Running]:
    run = Running(tmp_path, warm)
    with ended_afterwards(run.process):
        yield run
    run.store.close()


def small(name: str, **values: object) -> JobSpec:
    return job_spec({"name": name, "model": "mock:size=8", "trials": 8, **values})


def test_a_job_can_be_added_and_the_rest_cancelled(running: Running) -> None:
    extra = ["mock:size=8", "--name", "extra", "--trials", "8"]
    assert main(["add", "last", *extra, "--store", running.place]) == 0
    running.until(lambda: running.status("extra") is JobStatus.FINISHED)
    assert running.trials("extra") == 8
    assert running.status("long") is JobStatus.RUNNING
    assert main(["cancel", "last", "--store", running.place]) == 0
    assert running.process.wait(PATIENCE_S) == 0
    assert {running.status("long"), running.status("tomorrow")} == {JobStatus.CANCELLED}
    assert running.store.run("last").status is RunStatus.FINISHED
    assert running.trials("long") > 0


def test_a_paused_job_does_nothing_until_it_goes_on(running: Running) -> None:
    job_control.pause("last", "long", running.place)
    job_control.add_jobs("last", [small("first"), small("second")], running.place)
    running.until(lambda: running.status("first") is JobStatus.FINISHED)
    running.until(lambda: running.status("second") is JobStatus.FINISHED)
    running.until(lambda: running.stage("long") == "paused")
    trials = running.trials("long")
    job_control.add_jobs("last", [small("third", trials=8)], running.place)
    running.until(lambda: running.status("third") is JobStatus.FINISHED)
    assert running.trials("long") == trials
    assert running.status("long") is JobStatus.PAUSED
    job_control.unpause("last", "long", running.place)
    running.until(lambda: running.trials("long") > trials)


def test_one_job_can_be_cancelled_before_it_comes(running: Running) -> None:
    job_control.cancel("last", "tomorrow", running.place)
    job_control.cancel("last", "long", running.place)
    assert running.process.wait(PATIENCE_S) == 0
    assert running.status("tomorrow") is JobStatus.CANCELLED


def test_wishes_that_make_no_sense_are_refused(running: Running) -> None:
    place = running.place
    with pytest.raises(InputError, match=r"has no job 'x'; known: 'long', 'tomorrow'"):
        job_control.cancel("last", "x", place)
    with pytest.raises(InputError, match="job 'long' is running; nothing to change"):
        job_control.unpause("last", "long", place)
    with pytest.raises(InputError, match="already has a job named 'long'; choose another --name"):
        job_control.add_jobs("last", [small("long")], place)
    with pytest.raises(TargetError, match="no device with key 'rtx4090'; known: 'cpu'"):
        job_control.add_jobs("last", [small("far", device="rtx4090")], place)
    assert running.job("far") is None
    assert [job.name for job in job_control.add_jobs("last", [small("long")], place, renames=True)] == [
        "long-2"
    ]
    added = job_control.add_jobs("last", [small("far", device="rtx4090", waits_for_devices=True)], place)
    running.until(lambda: running.store.job(added[0].id).status is JobStatus.RUNNING)
    assert running.trials("far") == 0


def test_stage_times_of_a_run_can_be_simulated(
    running: Running, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = running.store.run("last").id
    running.until(lambda: any(span.kind == "update" for span in running.store.spans(run)))
    lines = stage_times("last", running.place)
    assert {line["kind"] for line in lines} == {"initialise", "select", "build", "profile", "update"}
    assert all(line["seconds"] >= 0 for line in lines)
    capsys.readouterr()
    assert main(["stages", "last", "--store", running.place]) == 0
    recording = tmp_path / "stages.jsonl"
    recording.write_text(capsys.readouterr().out)
    (job,) = load_recorded(recording)
    assert job.name == "long"


def test_an_ended_run_takes_no_wishes(tmp_path: Path) -> None:
    place = str(tmp_path / "store.db")
    with closing(open_store(place)) as store:
        run = store.create_run("tune").id
        store.finish_run(run, RunStatus.FINISHED)
    with pytest.raises(InputError, match="is not running, it is finished; start a new one"):
        job_control.cancel("last", None, place)
