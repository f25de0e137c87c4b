"""Who is here and who was: the jobs that the core knows."""

from tuneloom.errors import SchedulingError
from tuneloom.scheduling.records import STAGE_RUNNING, EndedJob, Job, Stage


class KnownJobs:
    """Live jobs in the order in which they came, and what is kept of those that ended."""

    def __init__(self) -> None:
        self.jobs: dict[str, Job] = {}
        self.ended: dict[str, EndedJob] = {}

    def live_job(self, name: str) -> Job | None:
        """The job, or None if it has ended; raises SchedulingError if it was never submitted."""
        job = self.jobs.get(name)
        if job is None and name not in self.ended:
            raise SchedulingError(f"no job {name!r} was ever submitted")
        return job

    def running_stage(self, job_name: str, stage_name: str) -> Stage | None:
        """The running stage, or None for a late result of one that was stopped."""
        job = self.jobs.get(job_name)
        stage = job.stages.get(stage_name) if job is not None else None
        if stage is not None and stage.state is STAGE_RUNNING:
            return stage
        job = self.live_job(job_name)
        if stage_name in (job.stopped if job is not None else self.ended[job_name].stopped):
            return None
        raise SchedulingError(f"job {job_name!r} has no running stage {stage_name!r}")
