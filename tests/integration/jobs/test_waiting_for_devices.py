"""A job may wait for a device that nobody has yet; it runs when one joins."""

import time
from collections.abc import Sequence
from contextlib import ExitStack, closing
from pathlib import Path

import pytest

from support.jobs.mock import MockJob, MockStage
from support.locks import someone_waits
from tuneloom.app.conducting.conductor import Conductor
from tuneloom.app.conducting.listening import Listener
from tuneloom.app.requests.job_specs import job_spec
from tuneloom.app.runs.executing.in_process import tune
from tuneloom.app.runs.settings import RunSettings
from tuneloom.app.runs.view import RunView
from tuneloom.engine.api import ResourceJoined, ResourceLeft
from tuneloom.engine.calls import Call, Returned
from tuneloom.engine.local import LocalEngine, Watch
from tuneloom.engine.machine import Fleet, Offer
from tuneloom.engine.sharing.locks import holding
from tuneloom.gpus import InstalledGpu
from tuneloom.model import Device, Host
from tuneloom.scheduling import Core, policy_named
from tuneloom.store import JobStatus, open_existing

pytestmark = pytest.mark.integration

MACHINE = Fleet(
    offers=(Offer(resource=Host(name="host", slots=1)), Offer(resource=Device(name="cpu0", key="cpu")))
)
BOARD = Offer(resource=Device(name="board0", key="board"))


class Plug(Watch):
    """A watch that finds a board once somebody has plugged it in."""

    def __init__(self) -> None:
        self.plugged = False

    def look(self) -> Sequence[ResourceJoined | ResourceLeft]:
        found = [ResourceJoined(offer=BOARD)] if self.plugged else []
        self.plugged = False
        return found


class Plugger(Listener):
    """Plugs the board in when the other job has ended, so that the first one waits until then."""

    def __init__(self, plug: Plug) -> None:
        self.plug = plug
        self.ended: list[str] = []

    def job_ended(self, job: str, *, cancelled: bool) -> None:
        self.ended.append(job)
        self.plug.plugged = job == "other"


def test_a_job_runs_when_its_device_joins_a_real_engine() -> None:
    plug = Plug()
    add = Call(function="tuneloom.testing.engines.calls:add", arguments=(2, 3))
    waits = MockJob(
        "waits", [MockStage(kind="profile", call=add, device_key="board")], waits_for_devices=True
    )
    heard = Plugger(plug)
    with closing(LocalEngine(watch=plug)) as engine:
        conductor = Conductor(Core(policy_named("load-aware")), engine, heard)
        conductor.add_machine(MACHINE)
        conductor.submit(waits)
        conductor.submit(MockJob("other", [MockStage(kind="build", call=add)]))
        conductor.run()
    assert heard.ended == ["other", "waits"]
    assert waits.results == [Returned(value=5)]


class GpuComes:
    """A display that plugs a GPU in as soon as it sees that the job waits for one."""

    def __init__(self) -> None:
        self.gpus: tuple[InstalledGpu, ...] = ()
        self.every_s = 0.0

    def show(self, view: RunView) -> None:
        if any(job.stage == "no device yet" for job in view.jobs):
            self.gpus = (InstalledGpu(uuid="GPU-1", name="A card"),)


def test_a_run_takes_a_gpu_that_appears_while_its_job_waits(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place, display = str(tmp_path / "store.db"), GpuComes()
    monkeypatch.setattr("tuneloom.app.devices.cuda.visible_gpus", lambda: display.gpus)
    spec = job_spec(
        {"name": "far", "model": "mock:size=10", "trials": 10, "device": "cuda", "waits_for_devices": True}
    )
    outcome = tune([spec], RunSettings(store=place), display=display)
    assert display.gpus and outcome.jobs[0].status is JobStatus.FINISHED
    with closing(open_existing(place)) as store:
        noted = {each["name"]: each for each in store.notes(outcome.run)["resources"]}
        spans = [span for span in store.spans(outcome.run) if span.kind == "profile"]
    assert noted["cuda0"]["joined_s"] > noted["cpu0"]["joined_s"]
    assert {span.resource for span in spans} == {"cuda0"}


class HoldsBoth:
    """A display that keeps two GPUs from measuring until there is something to measure for each of them."""

    every_s = 0.0

    def __init__(self, locks: Path) -> None:
        self._locks = locks
        self._until_s = time.monotonic() + PATIENCE_S
        self._held = ExitStack()
        self._held.enter_context(holding(TWO_LOCKS, alone=True, waits=lambda: None))

    def show(self, view: RunView) -> None:
        if all(someone_waits(self._locks, lock) for lock in TWO_LOCKS):
            self._held.close()
        assert time.monotonic() < self._until_s, "one of them got nothing"


PATIENCE_S = 300.0
TWO_LOCKS = ("gpu-GPU-0", "gpu-GPU-1")


def test_all_gpus_of_a_machine_work_on_one_job(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TUNELOOM_DEVICE_LOCKS", str(tmp_path / "locks"))
    two = tuple(InstalledGpu(uuid=f"GPU-{n}", name="A card") for n in range(2))
    monkeypatch.setattr("tuneloom.app.devices.cuda.visible_gpus", lambda: two)
    place = str(tmp_path / "store.db")
    spec = job_spec({"name": "shared", "model": "mock:size=40", "trials": 40, "device": "cuda"})
    outcome = tune([spec], RunSettings(store=place), display=HoldsBoth(tmp_path / "locks"))
    assert outcome.jobs[0].status is JobStatus.FINISHED
    with closing(open_existing(place)) as store:
        spans = [span for span in store.spans(outcome.run) if span.kind == "profile"]
        keys = [record.trial.candidate.key for record in store.trials(outcome.jobs[0].id)]
    assert {span.resource for span in spans} == {"cuda0", "cuda1"}
    assert len(keys) == len(set(keys)) == 40, "no trial is measured on both"
