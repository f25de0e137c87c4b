"""Every kind of job keeps the promises of a kind, and a stranger's tuner needs nothing but its wheel."""

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from support.commands import Workplace
from support.models.onnx_files import write_network
from support.warm import WarmInterpreter
from tuneloom.app.kinds.base import JobKind
from tuneloom.app.kinds.finding import kind_for, kind_named
from tuneloom.app.kinds.kernel.kind import KIND as KERNEL
from tuneloom.app.kinds.kernel.specs import kernel_spec
from tuneloom.app.kinds.mock.kind import KIND as MOCK
from tuneloom.app.kinds.model.kind import KIND as TVM
from tuneloom.app.requests.job_specs import job_spec
from tuneloom.app.runs.executing.in_process import tune
from tuneloom.app.runs.settings import RunSettings
from tuneloom.errors import InputError
from tuneloom.kernel import Kernel, Space
from tuneloom.model import Budget, JobSpec
from tuneloom.testing.contracts.kind import JobKindContract
from tuneloom.tuners.kernel.opening import keep_functions

pytestmark = pytest.mark.integration
EXAMPLES = Path(__file__).parents[3] / "examples"


class TestMockJobs(JobKindContract):
    def kind(self) -> JobKind:
        return MOCK

    def spec(self, folder: Path) -> JobSpec:
        return job_spec({"name": "mock", "model": "mock:tasks=2,size=20", "trials": 12, "batch": 4})

    def wrong_spec(self, folder: Path) -> JobSpec:
        return replace(self.spec(folder), model="mock:size=many")


def build(knobs: dict[str, int]) -> int:
    return knobs["level"]


def run(level: int) -> float:
    return 1e-3 / level


class TestKernelJobs(JobKindContract):
    def kind(self) -> JobKind:
        return KERNEL

    def spec(self, folder: Path) -> JobSpec:
        kernel = Kernel("levels", Space({"level": list(range(1, 9))}), build, run, None, "cpu")
        return kernel_spec("levels", str(keep_functions(kernel, folder)), "cpu", {"trials": 6})

    def wrong_spec(self, folder: Path) -> JobSpec:
        return kernel_spec("levels", str(folder / "none.toml"), "cpu", {"trials": 6})


class TestModelJobs(JobKindContract):
    def kind(self) -> JobKind:
        return TVM

    def spec(self, folder: Path) -> JobSpec:
        model = write_network(folder / "net.onnx")
        return JobSpec(name="net", model=str(model), budget=Budget(trials=8), batch=4)

    def wrong_spec(self, folder: Path) -> JobSpec:
        return replace(self.spec(folder), shapes={"nonesuch": (1, 2)})


def test_the_kind_follows_from_the_model_unless_it_is_named() -> None:
    models = ("net.onnx", "zoo:squeezenet", "mock:size=3", "conv.toml", "x.kernel")
    assert [kind_for(model).name for model in models] == ["tvm", "tvm", "mock", "kernel", "kernel"]
    assert job_spec({"name": "a", "model": "size=3", "tuner": "mock"}).tuner == "mock"
    with pytest.raises(InputError, match="no tuner named 'nonesuch'; known: kernel, mock"):
        kind_named("nonesuch")


def test_the_scheme_of_a_tuner_that_is_not_installed_is_not_taken_for_a_file() -> None:
    with pytest.raises(InputError, match="chunks:5: no tuner named 'chunks'; known: kernel, mock"):
        kind_for("chunks:5")


@pytest.fixture(scope="module")
def stranger(tmp_path_factory: pytest.TempPathFactory, warm: WarmInterpreter) -> Workplace:
    """A place where the example's tuner is installed from a wheel, as any other package."""
    folder = tmp_path_factory.mktemp("stranger")
    source, site = folder / "source", folder / "site"
    source.mkdir()
    (source / "own_tuner.py").write_text((EXAMPLES / "own_tuner.py").read_text())
    (source / "pyproject.toml").write_text((EXAMPLES / "own_tuner.toml").read_text())
    install = ["-m", "pip", "install", "-q", "--no-deps", "--no-build-isolation", "--no-index"]
    subprocess.run([sys.executable, *install, "--target", site, source], check=True, capture_output=True)
    return Workplace(folder=folder, environment={"PYTHONPATH": str(site)}, warm=warm)


def test_a_strangers_tuner_is_used_from_the_command_line_with_resume_and_report(stranger: Workplace) -> None:
    done = stranger.run("tune", "chunks:1000", "--trials", "9", "--json")
    assert done.returncode == 0, done.stderr
    (job,) = json.loads(done.stdout)["jobs"]
    assert (job["status"], job["spec"]["tuner"], job["result"]["trials"]) == ("finished", "chunks", 9)
    assert job["result"]["failures"] == {"build_error": 4}
    assert stranger.run("report", "last", "-o", "page.html").returncode == 0
    assert "sum of 1000 numbers" in (stranger.folder / "page.html").read_text()
    again = stranger.run("resume", "last")
    assert again.returncode == 2 and "is finished" in again.stderr


def test_a_strangers_tuner_is_used_from_a_jobs_file_and_refuses_its_own_bad_input(
    stranger: Workplace,
) -> None:
    jobs = (
        '[defaults]\ntrials = 5\n[[jobs]]\nmodel = "chunks:200"\n[[jobs]]\nmodel = "300"\ntuner = "chunks"\n'
    )
    (stranger.folder / "jobs.toml").write_text(jobs)
    done = stranger.run("tune", "--jobs", "jobs.toml", "--json")
    assert done.returncode == 0, done.stderr
    assert [job["result"]["trials"] for job in json.loads(done.stdout)["jobs"]] == [5, 5]
    refused = stranger.run("tune", "chunks:many")
    assert (refused.returncode, refused.stderr.count("\n")) == (2, 1)
    assert "'many' is no number of numbers" in refused.stderr


def test_a_strangers_tuner_is_used_from_python(stranger: Workplace, monkeypatch: pytest.MonkeyPatch) -> None:
    site = str(stranger.folder / "site")
    monkeypatch.syspath_prepend(site)
    monkeypatch.setenv("PYTHONPATH", site)
    spec = JobSpec(name="sum", model="chunks:1000", tuner="chunks", budget=Budget(trials=4))
    outcome = tune([spec], RunSettings(store=str(stranger.folder / "python.db")))
    assert outcome.failure is None and outcome.jobs[0].result["trials"] == 4
