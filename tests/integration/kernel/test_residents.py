"""A device that one process owns, such as a GPU, with a device that is none: who runs where."""

import os
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from tuneloom.app.kinds.kernel.specs import kernel_spec
from tuneloom.app.runs.executing.in_process import execute
from tuneloom.app.runs.settings import RunSettings
from tuneloom.engine.local import LocalEngine
from tuneloom.engine.machine import Fleet, Offer
from tuneloom.kernel import Kernel, Space
from tuneloom.model import Device, FailureKind, Host
from tuneloom.store import JobStatus, open_store
from tuneloom.tuners.kernel.opening import keep_functions

pytestmark = pytest.mark.integration

HOST = Offer(resource=Host(name="host", slots=2))
MACHINE = Fleet(offers=(HOST, Offer(resource=Device(name="gpu0", key="gpu"), resident=True)))
SPACE = Space({"level": [1, 2, 3, 4, 5, 6]})


class Workshop:
    """Builds and runs, and notes in which process; bad levels misbehave."""

    device_key = "gpu"

    def __init__(self, log: Path, builds_on_device: bool, misbehave: Callable[[], Any]) -> None:
        self.log, self.builds_on_device, self.misbehave = str(log), builds_on_device, misbehave

    def note(self, stage: str, level: int) -> None:
        with open(self.log, "a") as file:
            file.write(f"{stage} {level} {os.getpid()}\n")

    def build(self, configuration: dict[str, Any]) -> int:
        self.note("build", configuration["level"])
        return int(configuration["level"])

    def run(self, level: int) -> float:
        self.note("run", level)
        if level == 3:
            self.misbehave()
        return 1.0 / level


def tuned(tmp_path: Path, builds_on_device: bool, misbehave: Callable[[], Any]) -> dict[str, list[int]]:
    """Tune the whole space; the processes of each stage, by stage and in order."""
    log = tmp_path / "log.txt"
    workshop = Workshop(log, builds_on_device, misbehave)
    kernel = Kernel("levels", SPACE, workshop.build, workshop.run)
    path = keep_functions(kernel, tmp_path)
    spec = kernel_spec("levels", str(path), "gpu", {"run_timeout_s": 120, "build_timeout_s": 120})
    with closing(open_store(tmp_path / "store.db")) as store:
        run = store.submit_run("test", [("levels", spec.to_json())]).id
        (job,) = (record.id for record in store.jobs(run))
        engine = LocalEngine("tuneloom.tuners.kernel.warmth:warm_up")
        execute(store, run, engine, MACHINE, RunSettings(store=store.place))
        assert store.job(job).status is JobStatus.FINISHED
        assert store.job(job).result["best"] == {"level": 6}
        assert store.job(job).result["failures"] == {FailureKind.RUN_ERROR.value: 1}
        spans = {span.resource for span in store.spans(run) if span.kind == "profile"}
        assert spans == {"gpu0"}
    lines = [line.split() for line in log.read_text().splitlines()]
    return {stage: [int(pid) for named, _, pid in lines if named == stage] for stage in ("build", "run")}


def leave() -> None:
    os._exit(3)


def refuse() -> None:
    raise RuntimeError("illegal address")


@pytest.mark.parametrize("misbehave", [leave, refuse])
def test_runs_share_a_process_until_one_spoils_it(tmp_path: Path, misbehave: Callable[[], Any]) -> None:
    pids = tuned(tmp_path, False, misbehave)
    assert len(pids["run"]) == 6 and len(set(pids["run"])) <= 2
    assert len(set(pids["build"])) == 6 and not set(pids["build"]) & set(pids["run"])


def test_builds_that_need_the_device_are_done_by_its_process(tmp_path: Path) -> None:
    pids = tuned(tmp_path, True, refuse)
    assert len(pids["build"]) == 6
    assert len(set(pids["build"]) | set(pids["run"])) <= 2
