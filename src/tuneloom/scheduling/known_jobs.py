"""Who is here and who was: the jobs that the core knows."""

from tuneloom.errors import SchedulingError
from tuneloom.scheduling.records import STAGE_RUNNING, EndedJob, Job, Stage
from tuneloom.scheduling.stages import JobTicket

MOST_ENDED = 10_000
"""Of so many jobs that ended it is kept how; late results of earlier ones would be refused."""


class KnownJobs:
    """Live jobs in the order in which they came, and what is kept of those that ended lately."""

    def __init__(self) -> None:
        self.jobs: dict[str, Job] = {}
        self.ended: dict[str, EndedJob] = {}
        self._count = 0

    def enter(self, ticket: JobTicket, at_s: float) -> Job:
        """A new job; one that ended may come again, when its run was given away and taken back."""
        self.ended.pop(ticket.id, None)
        job = self.jobs[ticket.id] = Job(ticket, self._count, at_s)
        self._count += 1
        return job

    def end(self, name: str, ended: EndedJob) -> None:
        """A job ended, or never began."""
        self.jobs.pop(name, None)
        self.ended[name] = ended
        if len(self.ended) > MOST_ENDED:
            del self.ended[next(iter(self.ended))]

    def live_job(self, name: str) -> Job | None:
        """The job, or None if it has ended; raises SchedulingError if it was never submitted."""
        job = self.jobs.get(name)
        if job is None and name not in self.ended:
            raise SchedulingError(f"no job {name!r} is known: it was never submitted, or ended long ago")
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
