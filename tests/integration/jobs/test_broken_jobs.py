"""A bug in the code of one job leaves the others of its run alone, and can be looked at afterwards."""

from pathlib import Path

import pytest

from tuneloom.app.requests.jobs_file import job_spec
from tuneloom.app.runs.executing.in_process import tune
from tuneloom.app.runs.settings import RunSettings
from tuneloom.app.tasks.progress import TaskProgress
from tuneloom.app.tuning.spending import Spending
from tuneloom.store import JobStatus

pytestmark = pytest.mark.integration


def test_a_job_whose_code_raises_fails_and_the_other_is_tuned(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    next_batch = Spending.next_batch

    def spoiled(self: Spending, progress: TaskProgress) -> int:
        if self._spec.name == "bad" and self.spent >= 4:
            raise ZeroDivisionError("a bug")
        return next_batch(self, progress)

    monkeypatch.setattr(Spending, "next_batch", spoiled)
    specs = [
        job_spec({"name": name, "model": "mock:size=60", "trials": 40, "batch": 4})
        for name in ("bad", "good")
    ]
    outcome = tune(specs, RunSettings(store=str(tmp_path / "store.db")))
    bad, good = outcome.jobs
    assert (bad.status, good.status) == (JobStatus.FAILED, JobStatus.FINISHED)
    assert good.result["trials"] == 40
    assert str(outcome.failure) == "bad: ZeroDivisionError: a bug; --debug shows where"
    assert isinstance(outcome.failure.__cause__, ZeroDivisionError)
    assert "in spoiled" in bad.result["trace"]
