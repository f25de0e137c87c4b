"""Everything an executor carries out at one moment, for the views of all its runs."""

from collections.abc import Collection

from tuneloom.app.kinds.base import JobProgress
from tuneloom.app.runs.executing.held_run import HeldRun
from tuneloom.app.runs.view import RunView, job_picture, resource_pictures
from tuneloom.scheduling import Core, view


class Snapshot:
    """Core and programs are asked once, however many runs are looked at."""

    def __init__(self, core: Core, policy: str, runs: Collection[HeldRun], now_s: float) -> None:
        seen = view(core, now_s)
        programs = {job: program for held in runs for job, program in held.programs.items()}
        self._policy = policy
        self._now_s = now_s
        self._states = {job.id: job for job in seen.jobs}
        self._progress: dict[str, JobProgress] = {job: p.progress(now_s) for job, p in programs.items()}
        names = {job: (program.spec.name, self._progress[job]) for job, program in programs.items()}
        self._resources = resource_pictures(seen, names)

    def of(self, held: HeldRun) -> RunView:
        """What a run looks like; it is one of those that the snapshot was made of."""
        jobs = (
            job_picture(
                program,
                self._progress[job],
                self._states.get(job),
                held.statuses[job],
                held.due_s.get(job, 0.0) - self._now_s,
            )
            for job, program in held.programs.items()
        )
        return RunView(
            run=held.id,
            policy=self._policy,
            at_s=held.book.on_run_clock(self._now_s),
            resources=self._resources,
            jobs=tuple(jobs),
        )

    def of_executor(self, run: str) -> RunView:
        """What its resources do, for the executor's own run, which has no jobs."""
        return RunView(run=run, policy=self._policy, at_s=self._now_s, resources=self._resources, jobs=())
