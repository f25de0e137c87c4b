"""Which program carries out a job: chosen by its tuner."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tuneloom.app.kinds.kernel.job import KernelJob, KernelMemory
from tuneloom.app.kinds.kernel.presampling import Sample
from tuneloom.app.kinds.mock.job import MockModelJob
from tuneloom.app.kinds.model.job import ModelJob
from tuneloom.app.reuse.job_reuse import JobReuse
from tuneloom.app.runs.bookkeeping import Book
from tuneloom.model import JobSpec
from tuneloom.store import Store
from tuneloom.tuners.kernel import NAME as KERNEL
from tuneloom.tuners.kernel import PRESAMPLED
from tuneloom.tuners.mock import MockTuner


@dataclass(frozen=True, slots=True, kw_only=True)
class ProgramMaker:
    """Makes the programs of one run."""

    store: Store
    book: Book
    lanes: int
    tuners: int

    def program(self, job: str, spec: JobSpec) -> ModelJob:
        """The program of a job."""
        if spec.tuner == KERNEL:
            return self._kernel_job(job, spec)
        kind = MockModelJob if spec.tuner == MockTuner.name else ModelJob
        return kind(
            job,
            spec,
            opened=lambda summary: self.book.opened(job, spec, summary),
            keep=lambda task, trial, artifact: self.book.keep(job, task, trial, artifact),
            lanes=self.lanes,
            tuners=self.tuners,
            reuse=JobReuse(self.store, job, spec) if spec.tuner == "tvm" else None,
        )

    def _kernel_job(self, job: str, spec: JobSpec) -> KernelJob:
        return KernelJob(
            job,
            spec,
            opened=lambda summary: self.book.opened(job, spec, summary),
            keep=lambda task, trial, artifact: self.book.keep(job, task, trial, artifact),
            lanes=self.lanes,
            tuners=self.tuners,
            memory=KernelMemory(
                features=lambda: self._features(job),
                presampled=lambda: self._presampled(job),
                keep_presampled=lambda task, samples, took_s: self.store.set_plan(
                    job, task, {PRESAMPLED: [list(sample) for sample in samples], "seconds": took_s}
                ),
            ),
        )

    def _features(self, job: str) -> Sequence[tuple[Mapping[str, float], float | None]]:
        return [(record.features, record.seconds) for record in self.store.trials(job)]

    def _presampled(self, job: str) -> Sequence[Sample] | None:
        plans = [planned.plan for planned in self.store.tasks(job) if PRESAMPLED in planned.plan]
        return [(str(text), bool(builds)) for text, builds in plans[0][PRESAMPLED]] if plans else None
