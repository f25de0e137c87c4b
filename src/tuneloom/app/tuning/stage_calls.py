"""What travels to the stages of a tuning job: calls for workers, and how long builds may take."""

from bisect import insort
from collections.abc import Sequence
from dataclasses import dataclass, field

from tuneloom.app.reuse.gifts import Hints
from tuneloom.app.tasks.limits import SEARCH_S
from tuneloom.app.tasks.progress import DEFAULT, TaskProgress
from tuneloom.engine.calls import Call
from tuneloom.model import Artifact, Candidate, JobSpec, SearchOptions, StageKind, Task, Trial

_ENOUGH = 8  # builds of a class, before they speak for it
_HIGH = 0.9  # the quantile that stands for a slow build, not for a straggler
_FAR = 5.0  # times that: a build far beyond all others
_LATE = 2.0  # times that: too late when nothing else is left to do
_FLOOR_S = 6.0  # never less: a busy machine is no reason to give up a build
_LATE_FLOOR_S = 4.0  # nor is it at the end, where the machine may just have become busy


@dataclass(slots=True)
class BuildLimits:
    """What builds of one job took, by kernel class; `most_s` is the limit that the user gave."""

    most_s: float
    _all: list[float] = field(default_factory=list)
    _by_class: dict[str, list[float]] = field(default_factory=dict)

    def learn(self, kernel_class: str, seconds: float) -> None:
        """A build came to its end."""
        insort(self._all, seconds)
        insort(self._by_class.setdefault(kernel_class, []), seconds)

    @property
    def least_s(self) -> float:
        """No build is given up before."""
        return min(self.most_s, _LATE_FLOOR_S)

    def limit_s(self, kernel_class: str) -> float:
        """After so long a build is given up."""
        slow_s = self._slow_s(kernel_class)
        return self.most_s if slow_s is None else min(self.most_s, max(_FLOOR_S, _FAR * slow_s))

    def late_s(self, kernel_class: str) -> float:
        """After so long a build is given up if everything waits for it alone."""
        slow_s = self._slow_s(kernel_class)
        return self.most_s if slow_s is None else min(self.most_s, max(_LATE_FLOOR_S, _LATE * slow_s))

    def _slow_s(self, kernel_class: str) -> float | None:
        """What a slow build takes: of this class, or of any where the class has shown little."""
        own = self._by_class.get(kernel_class, [])
        seen = own if len(own) >= _ENOUGH else self._all
        return seen[int(_HIGH * (len(seen) - 1))] if len(seen) >= _ENOUGH else None


STAGES = "tuneloom.tuners.stages"


@dataclass(frozen=True, slots=True)
class StageCalls:
    """Makes the calls of one job; its searches live in so many named `workers`."""

    job: str
    spec: JobSpec
    workers: int

    def search_worker(self, progress: TaskProgress) -> str:
        """The worker that keeps a task's search."""
        return f"{self.job}:tuner{progress.index % self.workers}"

    def open_and_select(self, progress: TaskProgress, count: int, options: SearchOptions) -> Call:
        """Open a task's search with all known trials, and ask it for candidates."""
        task = self.task_for(StageKind.SELECT, progress)
        arguments = (self._key(progress), self.spec.tuner, task, options, list(progress.trials), count)
        worker = self.search_worker(progress)
        return Call(
            function=f"{STAGES}:open_and_select", arguments=arguments, worker=worker, timeout_s=SEARCH_S
        )

    def select(self, progress: TaskProgress, count: int, hints: Hints) -> Call:
        """Ask a search that is open for candidates, and tell it what others found."""
        arguments: tuple[object, ...] = (self._key(progress), count)
        if hints.seeds or hints.witnessed:
            arguments = (*arguments, hints.seeds, hints.witnessed)
        worker = self.search_worker(progress)
        return Call(function=f"{STAGES}:select", arguments=arguments, worker=worker, timeout_s=SEARCH_S)

    def build(self, progress: TaskProgress, candidate: Candidate, limit_s: float) -> Call:
        """Build one candidate, within so many seconds, in a process that may have built others of the job."""
        rules = self.spec.measuring
        return Call(
            function=f"{STAGES}:build",
            group=self.builders(),
            arguments=(self.spec.tuner, self.task_for(StageKind.BUILD, progress), candidate, rules),
            timeout_s=limit_s,
            memory_bytes=rules.memory_bytes,
        )

    def builders(self) -> str | None:
        """The group whose processes build, one candidate after another; none if each has its own."""
        return f"{self.job}:build"

    def profile(self, progress: TaskProgress, candidate: Candidate, artifact: Artifact) -> Call:
        """Measure one candidate."""
        # The default schedule is a baseline, not a contender: one run of it is enough.
        best_s = 1e-9 if candidate.origin == DEFAULT else progress.best_s
        rules, task = self.spec.measuring, self.task_for(StageKind.PROFILE, progress)
        return Call(
            function=f"{STAGES}:profile",
            arguments=(self.spec.tuner, task, artifact, rules, best_s),
            timeout_s=rules.run_timeout_s,
            memory_bytes=rules.memory_bytes,
        )

    def canary(self, progress: TaskProgress, payload: bytes) -> Call:
        """Time the fixed kernel that watches the device."""
        rules = self.spec.measuring
        return Call(
            function=f"{STAGES}:profile",
            arguments=(self.spec.tuner, progress.bare, Artifact(payload=payload), rules, None),
            timeout_s=rules.run_timeout_s,
        )

    def update(self, progress: TaskProgress, trials: Sequence[Trial]) -> Call:
        """Tell a search what became of its candidates."""
        arguments, worker = (self._key(progress), trials), self.search_worker(progress)
        return Call(function=f"{STAGES}:update", arguments=arguments, worker=worker, timeout_s=SEARCH_S)

    def task_for(self, stage: StageKind, progress: TaskProgress) -> Task:
        """The task as it travels to a stage; a candidate carries what building needs, if anything does."""
        return progress.task if stage is StageKind.SELECT else progress.bare

    def _key(self, progress: TaskProgress) -> str:
        return f"{self.job}:{progress.index}"
