"""The log of a real run leads a fresh scheduler to the very same decisions."""

import json
from contextlib import closing
from pathlib import Path

import pytest

from support.commands import Workplace
from tuneloom.app.requests.job_specs import job_spec
from tuneloom.app.runs.asking.log_replay import replay_log
from tuneloom.app.runs.executing.executor import Interrupted
from tuneloom.app.runs.executing.in_process import resume, tune
from tuneloom.app.runs.settings import RunSettings
from tuneloom.app.runs.view import RunView
from tuneloom.errors import InputError
from tuneloom.model import JobSpec
from tuneloom.store import open_store

pytestmark = pytest.mark.integration


class EndsEarly:
    """A display that behaves like a user who presses Ctrl-C after a few trials."""

    every_s = 0.0

    def show(self, view: RunView) -> None:
        if any(job.spent >= 5 for job in view.jobs):
            raise KeyboardInterrupt


def jobs(*names: str) -> list[JobSpec]:
    model = "mock:tasks=2,size=40,build_error=0.2,worker_lost=0.1"
    return [job_spec({"name": name, "model": model, "trials": 20}) for name in names]


@pytest.mark.parametrize("policy", ["load-aware", "interleaved"])
def test_a_run_that_was_resumed_is_replayed_in_another_process_without_a_difference(
    tmp_path: Path, policy: str
) -> None:
    place = str(tmp_path / "store.db")
    with pytest.raises(Interrupted):
        tune(jobs("one", "two"), RunSettings(store=place, policy=policy), display=EndsEarly())
    resume("last", place)
    # Another order of hashes must not change a decision.
    program = Workplace(folder=tmp_path, environment={"PYTHONHASHSEED": "7"})
    told = program.run("replay-log", "last", "--json", "--store", place)
    found = json.loads(told.stdout)
    assert found["starts"] == 2 and found["differences"] == []
    with closing(open_store(place)) as store:
        logged = len(store.events(found["run"]))
    assert found["equal"] == logged - found["starts"] and found["skipped"] == found["unlogged"] == 0


def test_a_run_without_a_log_is_refused(tmp_path: Path) -> None:
    place = str(tmp_path / "store.db")
    with closing(open_store(place)) as store:
        store.create_run("tune", {})
    with pytest.raises(InputError, match="has no log"):
        replay_log("last", place)
