"""A mock job goes from its first step to its last without a compiler."""

from tuneloom.app.kinds.mock.job import MockModelJob
from tuneloom.engine.worker import carry_out
from tuneloom.model import Budget, JobSpec
from tuneloom.testing.small_jobs import drive


def test_a_mock_job_is_done_when_its_last_step_is() -> None:
    spec = JobSpec(
        name="mock", model="mock:tasks=2,size=9,build=0,profile=0", tuner="mock", budget=Budget(trials=8)
    )
    job = MockModelJob("j", spec, opened=lambda _summary: {}, keep=lambda *_: None, lanes=2, tuners=1)
    assert drive(job.begin(0.0), carry_out) > 16
    assert job.done and job.failure is None
    assert job.finish is not None and job.finish.check is not None
