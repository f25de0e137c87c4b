"""Whole runs on three simulated machines: built here, measured there, and nothing lost when machines are."""

import json
import platform
import signal
import subprocess
import sys
from collections import Counter
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from support.boards.local import BoardProcess
from support.ending import ending
from support.models.onnx_files import write_network
from tuneloom.app.farm.checking import check_farm
from tuneloom.app.farm.reading import read_farm
from tuneloom.app.runs.asking import control
from tuneloom.app.runs.executing.in_process import RunOutcome, tune
from tuneloom.app.runs.executing.serving import serve_runs
from tuneloom.app.runs.settings import RunSettings
from tuneloom.errors import FarmError
from tuneloom.model import Budget, JobSpec
from tuneloom.store import JobStatus, RunStatus, open_existing

if TYPE_CHECKING:
    from support.engines.simulated_cluster import SimulatedCluster

TWO_DEVICES = """
[[hosts]]
node = "alder"
slots = 1

[[hosts]]
node = "birch"
slots = 2

[[devices]]
key = "pine"
kind = "cpu"
node = "birch"

[[devices]]
key = "pine"
kind = "cpu"
node = "cedar"
"""


BUILT_HERE_MEASURED_THERE = """
[[hosts]]
node = "alder"
slots = 0

[[hosts]]
node = "birch"
slots = 2

[[hosts]]
node = "cedar"
slots = 0

[[devices]]
key = "pine"
kind = "cpu"
node = "alder"
"""


ONE_MACHINE = """
[[hosts]]
node = "alder"
slots = 1

[[hosts]]
node = "birch"
slots = 0

[[hosts]]
node = "cedar"
slots = 0

[[devices]]
key = "pine"
kind = "cpu"
node = "alder"
"""


@pytest.fixture
def farm(simulated: "SimulatedCluster", tmp_path: Path) -> Path:
    path = tmp_path / "farm.toml"
    path.write_text(f'address = "{simulated.address}"\n{TWO_DEVICES}')
    return path


def mock_spec(trials: int, size: int = 200, **stages: float) -> JobSpec:
    times = "".join(f",{name}={seconds}" for name, seconds in stages.items())
    return JobSpec(
        name="it",
        model=f"mock:tasks=3,size={size}{times}",
        tuner="mock",
        device_key="pine",
        budget=Budget(trials=trials),
        batch=8,
    )


def settings_of(farm: Path) -> RunSettings:
    return RunSettings(store=str(farm.parent / "store.db"), farm=str(farm))


def require_every_trial_once(outcome: RunOutcome, place: str, trials: int) -> None:
    with closing(open_existing(place)) as store:
        records = store.trials(outcome.jobs[0].id)
    seen = Counter((record.task_key, record.trial.candidate.key) for record in records)
    assert len(records) == trials and max(seen.values()) == 1


def test_a_run_uses_the_slots_and_devices_of_several_machines(farm: Path) -> None:
    settings = settings_of(farm)
    # Builds come faster than one device measures, so that there is something for the other.
    outcome = tune([mock_spec(24, build=0.005, profile=0.2)], settings)
    assert outcome.failure is None
    require_every_trial_once(outcome, settings.store or "", 24)
    with closing(open_existing(settings.store)) as store:
        spans = store.spans(outcome.run)
        resources = store.notes(outcome.run)["resources"]
    profiled = {span.resource for span in spans if span.kind == "profile"}
    assert profiled == {"birch/pine0", "cedar/pine0"}
    assert {span.resource.partition("/")[0] for span in spans if span.kind == "build"} >= {"alder", "birch"}
    assert {entry["machine"] for entry in resources} == {"alder", "birch", "cedar"}


def test_a_machine_that_dies_in_the_middle_costs_no_trial_and_is_used_when_it_is_back(
    farm: Path, simulated: "SimulatedCluster"
) -> None:
    settings, seen, cancelled = settings_of(farm), [0], []

    def on_trial(job: str, _trial: object) -> None:
        seen[0] += 1
        if seen[0] == 10:
            simulated.kill("cedar")
            simulated.add("cedar")
        elif seen[0] > 10 and not cancelled and used_after_return(settings.store, job):
            cancelled.extend(control.cancel(job.rpartition(".")[0], None, settings.store))

    outcome = tune([mock_spec(100_000, size=100_000, build=0.05, profile=0.1)], settings, on_trial=on_trial)
    assert outcome.jobs[0].status is JobStatus.CANCELLED, "that the machine is used again ends the run"
    require_every_trial_once(outcome, settings.store or "", seen[0])


def used_after_return(place: str | None, job: str) -> bool:
    """Whether a stage ran on the machine that was away since it is back, maybe under another name."""
    run = job.rpartition(".")[0]
    with closing(open_existing(place)) as store:
        resources = {entry["name"]: entry for entry in store.notes(run).get("resources", ())}
        away = resources.get("cedar/pine0", {}).get("away", ())
        stages = [span for span in store.spans(run) if span.resource.startswith("cedar")]
    return any(span.start_s > left_s for left_s, _ in away for span in stages)


def test_a_network_is_built_on_one_machine_measured_on_another_and_its_bundle_comes_back(
    farm: Path, simulated: "SimulatedCluster", tmp_path: Path, home: Path
) -> None:
    farm.write_text(f'address = "{simulated.address}"\n{BUILT_HERE_MEASURED_THERE}')
    model, out = write_network(tmp_path / "net.onnx", channels=8, size=8), tmp_path / "out"
    spec = JobSpec(
        name="net", model=str(model), device_key="pine", budget=Budget(trials=4), batch=2, out=str(out)
    )
    outcome = tune([spec], settings_of(farm))
    assert outcome.failure is None
    assert json.loads((out / "bundle.json").read_text())["measured"]["output_difference"] < 1e-3
    assert {"model.so", "run.py"} <= {path.name for path in out.iterdir()}
    with closing(open_existing(str(tmp_path / "store.db"))) as store:
        places = {(span.kind, span.resource) for span in store.spans(outcome.run)}
    assert {resource for kind, resource in places if kind == "profile"} == {"alder/pine0"}
    assert ("finalise", "birch/host") in places
    (kept,) = (home / "farm").glob("*/files/*")
    assert kept.parent.parent.name == "birch", "the model travels once, to the machine that reads it"


def test_a_board_measures_what_machines_of_the_cluster_build(
    farm: Path, simulated: "SimulatedCluster", tmp_path: Path
) -> None:
    target = json.dumps({"kind": "llvm", "mtriple": f"{platform.machine()}-linux-gnu"})
    model, out = write_network(tmp_path / "net.onnx"), tmp_path / "out"
    spec = JobSpec(
        name="net", model=str(model), device_key="test", budget=Budget(trials=4), batch=2, out=str(out)
    )
    with BoardProcess.real(target) as process:
        board = f"key = 'test'\nkind = 'rpc'\naddress = '{process.board.address}'\ntarget = '{target}'\n"
        farm.write_text(f'address = "{simulated.address}"\n{BUILT_HERE_MEASURED_THERE}\n[[devices]]\n{board}')
        outcome = tune([spec], settings_of(farm))
    assert outcome.failure is None
    (job,) = outcome.jobs
    assert (job.result["trials"], job.result["failures"]) == (4, {})
    assert json.loads((out / "bundle.json").read_text())["measured"]["output_difference"] < 1e-3
    with closing(open_existing(str(tmp_path / "store.db"))) as store:
        places = {(span.kind, span.resource) for span in store.spans(outcome.run)}
    assert {resource for kind, resource in places if kind == "build"} == {"birch/host"}
    (device,) = {resource for kind, resource in places if kind == "profile"}
    assert "test@127.0.0.1" in device


def test_a_farm_is_tried_out(farm: Path) -> None:
    rows = check_farm(read_farm(farm))
    devices = {row.name: row for row in rows if row.key}
    assert devices.keys() == {"birch/pine0", "cedar/pine0"}
    assert all(row.well and row.canary_s for row in devices.values())
    hosts = [row for row in rows if not row.key]
    assert {row.machine for row in hosts} == {"alder", "birch", "cedar"}
    assert all(row.clock_offset_s is not None and "Tuneloom" in row.versions for row in hosts)


def test_a_node_that_ray_does_not_have_is_refused_with_its_line(farm: Path) -> None:
    farm.write_text(farm.read_text().replace('node = "cedar"', 'node = "oak"'))
    with pytest.raises(
        FarmError, match=r"farm\.toml, line 16: Ray has no node 'oak'; known: 'alder', 'birch'"
    ):
        tune([mock_spec(4)], settings_of(farm))


def test_the_run_of_a_killed_driver_is_taken_over_by_an_executor_of_the_farm(
    farm: Path, simulated: "SimulatedCluster"
) -> None:
    farm.write_text(f'address = "{simulated.address}"\n{ONE_MACHINE}')
    settings = settings_of(farm)
    words = ["tune", "mock:tasks=3,size=200,build=0.02,profile=0.02", "--trials", "60", "--batch", "8"]
    words += ["--device", "pine", "--farm", str(farm), "--store", str(settings.store), "--quiet"]
    driver = subprocess.run([sys.executable, *ending(10, signal.SIGKILL, *words)], check=False)
    assert driver.returncode == -signal.SIGKILL
    serve_runs(settings, until_idle=True)
    with closing(open_existing(settings.store)) as store:
        (run,) = (run for run in store.runs() if store.jobs(run.id))
        outcome = RunOutcome(run=run.id, jobs=tuple(store.jobs(run.id)), failure=None)
    assert run.status is RunStatus.FINISHED and outcome.jobs[0].status is JobStatus.FINISHED
    require_every_trial_once(outcome, settings.store or "", 60)
