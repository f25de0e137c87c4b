"""Jobs that tune nothing, and jobs whose candidates misbehave, on real processes."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from support.jobs.mock import MockJob, MockStage
from tuneloom.app.conducting.conductor import Conductor
from tuneloom.app.conducting.listening import Listener
from tuneloom.app.requests.job_specs import job_spec
from tuneloom.app.runs.executing.in_process import tune
from tuneloom.app.runs.settings import RunSettings
from tuneloom.engine.calls import Call, Died, Returned
from tuneloom.engine.local import LocalEngine
from tuneloom.engine.machine import Fleet, Offer
from tuneloom.model import Device, Host
from tuneloom.scheduling import POLICIES, Core, policy_named
from tuneloom.store import JobStatus, SpanRecord

pytestmark = pytest.mark.integration

MACHINE = Fleet(
    offers=(Offer(resource=Host(name="host", slots=2)), Offer(resource=Device(name="bench0", key="bench")))
)


class Watcher(Listener):
    def __init__(self) -> None:
        self.spans: list[SpanRecord] = []
        self.ended: list[str] = []

    def ran(self, span: SpanRecord) -> None:
        self.spans.append(span)

    def job_ended(self, job: str, *, cancelled: bool) -> None:
        self.ended.append(job)


@pytest.fixture
def engine() -> Iterator[LocalEngine]:
    opened = LocalEngine()
    yield opened
    opened.close()


def chores(name: str) -> MockJob:
    add = Call(function="tuneloom.testing.engines.calls:add", arguments=(2, 3))
    crash = Call(function="tuneloom.testing.engines.calls:crash")
    return MockJob(
        name,
        [
            MockStage(kind="cook", call=add),
            MockStage(kind="taste", call=crash, device_key="bench"),
            MockStage(kind="wash", call=add),
        ],
    )


@pytest.mark.parametrize("policy", list(POLICIES))
def test_jobs_that_are_no_tuning_jobs_are_scheduled(engine: LocalEngine, policy: str) -> None:
    watcher = Watcher()
    conductor = Conductor(Core(policy_named(policy)), engine, watcher)
    conductor.add_machine(MACHINE)
    jobs = [chores("monday"), chores("tuesday")]
    for job in jobs:
        conductor.submit(job)
    conductor.run()
    assert sorted(watcher.ended) == ["monday", "tuesday"]
    for job in jobs:
        cooked, tasted, washed = job.results
        assert isinstance(cooked, Returned) and cooked.value == 5
        assert isinstance(tasted, Died)
        assert isinstance(washed, Returned)
    assert {span.resource for span in watcher.spans if span.kind == "taste"} == {"bench0"}


def test_candidates_that_hang_crash_or_fail_cost_one_trial_each(tmp_path: Path) -> None:
    failures = "build_error=0.15,build_timeout=0.1,run_error=0.15,run_timeout=0.05,worker_lost=0.1"
    spec = job_spec(
        {
            "name": "rough",
            "model": f"mock:size=40,{failures}",
            "trials": 40,
            "run_timeout_s": 2.0,
            "build_timeout_s": 2.0,
        }
    )
    outcome = tune([spec], RunSettings(store=str(tmp_path / "store.db")))
    (job,) = outcome.jobs
    assert job.status is JobStatus.FINISHED
    assert job.result["trials"] == 40
    kinds = set(job.result["failures"])
    assert kinds == {"build_error", "build_timeout", "run_error", "run_timeout", "worker_lost"}
    assert sum(job.result["failures"].values()) < 40
