"""What every kind of job must do; its author inherits from JobKindContract and gives jobs.

```python
class TestMyKind(JobKindContract):
    def kind(self) -> JobKind:
        return KIND

    def spec(self, folder: Path) -> JobSpec:
        return JobSpec(name="small", model="mine:size=8", tuner="mine", budget=Budget(trials=6))

    def wrong_spec(self, folder: Path) -> JobSpec:
        return replace(self.spec(folder), model="mine:size=minus one")
```
"""

import json
from pathlib import Path

import pytest

from tuneloom.app.kinds.base import JobKind
from tuneloom.app.kinds.finding import kind_named
from tuneloom.app.reports.reporting import report_data
from tuneloom.app.requests.schema import fields_for
from tuneloom.app.requests.sources import require_possible
from tuneloom.app.runs.executing.executor import Interrupted
from tuneloom.app.runs.executing.in_process import resume, tune
from tuneloom.app.runs.settings import RunSettings
from tuneloom.app.runs.view import RunView
from tuneloom.errors import InputError
from tuneloom.model import JobSpec
from tuneloom.store import JobStatus, open_store


class _EndsAfter:
    """A display that behaves like a user who presses Ctrl-C after so many trials."""

    every_s = 0.0

    def __init__(self, trials: int) -> None:
        self._trials = trials

    def show(self, view: RunView) -> None:
        json.dumps(view.to_json())
        if any(job.spent >= self._trials for job in view.jobs):
            raise KeyboardInterrupt


class JobKindContract:
    """Give `kind`, a job of at least four trials that takes seconds, and one that is refused."""

    def kind(self) -> JobKind:
        raise NotImplementedError

    def spec(self, folder: Path) -> JobSpec:
        raise NotImplementedError

    def wrong_spec(self, folder: Path) -> JobSpec:
        raise NotImplementedError

    def test_it_is_found_under_its_name(self) -> None:
        assert kind_named(self.kind().name) is self.kind()

    def test_its_fields_can_be_given_wherever_jobs_are_described(self) -> None:
        known = fields_for(self.kind().name, self.kind().fields)
        assert {field.name for field in self.kind().fields} <= known.keys()

    def test_a_good_job_passes_its_checks_and_survives_being_stored(self, tmp_path: Path) -> None:
        spec = self.spec(tmp_path)
        require_possible(spec, [spec.device_key])
        assert JobSpec.from_json(json.loads(json.dumps(spec.to_json()))) == spec

    def test_a_wrong_job_is_refused_before_a_run_begins(self, tmp_path: Path) -> None:
        place = tmp_path / "store.db"
        with pytest.raises(InputError):
            tune([self.wrong_spec(tmp_path)], RunSettings(store=str(place)))
        assert not place.exists()

    def test_a_job_spends_its_budget_and_its_result_is_plain_data(self, tmp_path: Path) -> None:
        spec, place = self.spec(tmp_path), str(tmp_path / "store.db")
        outcome = tune([spec], RunSettings(store=place))
        (job,) = outcome.jobs
        assert outcome.failure is None and job.status is JobStatus.FINISHED
        assert 0 < job.result["trials"] <= spec.budget.trials
        json.dumps(job.result, allow_nan=False)
        with open_store(place) as store:
            assert store.trial_count(job.id) == job.result["trials"]
            assert report_data(store, outcome.run).models[0].after_s

    def test_an_interrupted_job_goes_on_and_measures_nothing_twice(self, tmp_path: Path) -> None:
        spec, place = self.spec(tmp_path), str(tmp_path / "store.db")
        with pytest.raises(Interrupted):
            tune([spec], RunSettings(store=place), display=_EndsAfter(2))
        with open_store(place) as store:
            (job,) = store.jobs(store.run("last").id)
            before = [(r.task_key, r.trial.candidate.key) for r in store.trials(job.id)]
        assert len(before) >= 2
        (ended,) = resume("last", place).jobs
        with open_store(place) as store:
            after = [(r.task_key, r.trial.candidate.key) for r in store.trials(job.id)]
        assert ended.status is JobStatus.FINISHED
        assert after[: len(before)] == before and len(set(after)) == len(after) <= spec.budget.trials
