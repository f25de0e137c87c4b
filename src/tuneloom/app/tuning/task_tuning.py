"""A tuning job as a program: lanes of select, build, profile, update over its tasks."""

from collections.abc import Callable, Sequence

from tuneloom.app.conducting.programs import Step
from tuneloom.app.reuse.job_reuse import JobReuse
from tuneloom.app.tasks.outcomes import built, profiled
from tuneloom.app.tasks.progress import TaskProgress
from tuneloom.app.tuning.allocation import next_task
from tuneloom.app.tuning.searches import Lane, Searches
from tuneloom.app.tuning.spending import Spending
from tuneloom.app.tuning.stage_calls import BuildLimits, StageCalls
from tuneloom.engine.calls import Call, CallResult, Returned
from tuneloom.model import (
    Artifact,
    Candidate,
    Failure,
    JobSpec,
    Measurement,
    Outcome,
    StageKind,
    Task,
    Trial,
)
from tuneloom.scheduling.stages import ANY_CORE, Demand, DeviceDemand, StageRequest

Keep = Callable[[Task, Trial, Artifact | None], None]
_CHANCES = 3
"""After so many lost devices and machines, the candidate that ran there is to blame."""
_EVEN_LATE = 3
"""Builds of a batch that are made after the budget's seconds for a task that has no schedule yet."""
_SEARCHING = (StageKind.SELECT, StageKind.UPDATE)


class TaskTuning:
    """Spends a budget of trials on tasks, several lanes at a time.

    Pure but for `keep`, which has to store a trial before it returns. When `running`
    is false and no steps are out, there is nothing more to do.
    """

    def __init__(
        self,
        job: str,
        spec: JobSpec,
        tasks: Sequence[TaskProgress],
        keep: Keep,
        *,
        lanes: int,
        workers: int,
        reuse: JobReuse | None = None,
    ) -> None:
        self._job = job
        self._reuse = reuse
        self.spending = Spending(spec, tasks, reuse)
        self._spec = spec
        self.tasks = tasks
        self._keep = keep
        self._most_lanes = lanes
        self._calls = self._stage_calls(workers)
        self._searches = Searches(spec, tasks, self.spending, self._calls, reuse)
        self._limits = BuildLimits(spec.measuring.build_timeout_s)
        self._lanes: dict[str, Lane] = {}
        self.batches_done = 0
        self._canary = b""
        self.canary_s: list[tuple[float, float]] = []

    def _stage_calls(self, workers: int) -> StageCalls:
        return StageCalls(self._job, self._spec, workers)

    @property
    def spent(self) -> int:
        """Trials finished, of all tasks."""
        return self.spending.spent

    @property
    def latency_s(self) -> float | None:
        """What one run of the model takes by its kernels' best times; None while some have none."""
        return self.spending.latency_s

    @property
    def running(self) -> bool:
        return bool(self._lanes)

    def begin(self, at_s: float, canary: bytes) -> list[Step]:
        """The first lanes."""
        self.spending.started_s, self.spending.known = at_s, self.spent
        self._canary = canary
        return self._refill(at_s)

    def go_on(self, at_s: float) -> list[Step]:
        """More lanes, if the budget and the goal allow it."""
        return self._refill(at_s)

    def stop(self) -> None:
        """Open no more lanes."""
        self.spending.stopping = True

    def worker_lost(self, worker: str) -> None:
        """A worker is gone: the searches it kept are opened again; they then learn all trials anew."""
        self._searches.worker_lost(worker)

    def _refill(self, at_s: float) -> list[Step]:
        steps: list[Step] = []
        while len(self._lanes) < self._most_lanes and not self.spending.over(at_s):
            progress = next_task(self.tasks, self._spec.batch, self._lanes_per_task())
            if progress is None:
                break
            steps.append(self._open_lane(progress, self.spending.next_batch(progress)))
        return steps

    def _lanes_per_task(self) -> int:
        return 1 if len(self.tasks) > 1 else 2

    def _open_lane(self, progress: TaskProgress, count: int) -> Step:
        lane = Lane(f"{progress.index}.{progress.batches}", progress, count)
        if self._reuse is not None and progress.opened:
            lane.hints = self._reuse.collect(progress)
        progress.batches += 1
        progress.lanes += 1
        progress.in_flight += count
        self._lanes[lane.name] = lane
        return Step(
            request=self._request(lane, 0, StageKind.SELECT, "", ANY_CORE, ANY_CORE),
            call=lambda: self._searches.select_call(lane),
            ended=lambda result, at_s: self._selected(lane, result, at_s),
        )

    def _selected(self, lane: Lane, result: CallResult, at_s: float) -> Sequence[Step] | None:
        if not isinstance(result, Returned):
            return self._search_lost(lane, result, at_s)
        if result.value is None:  # it ended with a process of which nobody told: this one is new
            lane.progress.opened = False
            return None
        candidates = lane.progress.unseen(result.value)
        lane.progress.in_flight -= lane.planned - len(candidates)
        lane.left = len(candidates)
        if not candidates:
            lane.progress.exhausted = not result.value
            return self._close_lane(lane, at_s)
        steps = [self._build_step(lane, n, candidate) for n, candidate in enumerate(candidates)]
        if self._canary:
            lane.left += 1
            steps.append(self._canary_step(lane))
        return steps

    def _search_lost(self, lane: Lane, result: CallResult, at_s: float) -> Sequence[Step] | None:
        if not self._searches.given_up(lane, result):
            return None
        lane.progress.in_flight -= lane.planned
        return self._close_lane(lane, at_s)

    def _build_step(self, lane: Lane, number: int, candidate: Candidate) -> Step:
        def call() -> Call:
            lane.building.add(number)
            limit_s = self._limits.limit_s(lane.progress.task.kernel_class)
            return self._calls.build(lane.progress, candidate, limit_s)

        def ended(result: CallResult, at_s: float) -> Sequence[Step]:
            lane.building.discard(number)
            if isinstance(result, Returned) and result.value is None:
                return self._withdrawn(lane, at_s)
            return self._built(lane, number, candidate, result, at_s)

        device = DeviceDemand(key=self._spec.device_key)
        return Step(
            request=self._request(lane, 1, StageKind.BUILD, f"/{number}", self._build_demand(), device),
            call=call,
            ended=ended,
            overdue=lambda ran_s, at_s: self._overdue(lane, ran_s, at_s),
            needless=lambda at_s: self._needless(lane, number, at_s),
            chances=_CHANCES,
        )

    def _needless(self, lane: Lane, number: int, at_s: float) -> bool:
        """Whether a build comes too late, after the seconds of the budget; each task gets its first few."""
        return self.spending.late(at_s) and (bool(lane.progress.best) or number >= _EVEN_LATE)

    def _withdrawn(self, lane: Lane, at_s: float) -> Sequence[Step]:
        """A candidate that was not built costs no trial."""
        lane.progress.in_flight -= 1
        lane.left -= 1
        if lane.left:
            return []
        return [self._update_step(lane)] if lane.trials else self._close_lane(lane, at_s)

    def _overdue(self, lane: Lane, ran_s: float, at_s: float) -> bool:
        """Whether a build should be given up: it takes far too long, or everything waits for it alone."""
        if ran_s <= self._limits.least_s:
            return False
        kernel_class = lane.progress.task.kernel_class
        if ran_s > self._limits.limit_s(kernel_class):
            return True
        return ran_s > self._limits.late_s(kernel_class) and self._only_builds_left(at_s)

    def _only_builds_left(self, at_s: float) -> bool:
        """Whether the budget is spent and every batch waits for nothing but builds that run."""
        lanes = self._lanes.values()
        return self.spending.over(at_s) and all(0 < lane.left == len(lane.building) for lane in lanes)

    def _build_demand(self) -> Demand:
        return ANY_CORE

    def _built(
        self, lane: Lane, number: int, candidate: Candidate, result: CallResult, at_s: float
    ) -> Sequence[Step]:
        artifact: Artifact | Failure = built(result)
        if isinstance(artifact, Failure):
            return self._settle(lane, candidate, artifact, None, at_s)
        self._limits.learn(lane.progress.task.kernel_class, artifact.build_s)
        return [self._profile_step(lane, number, candidate, artifact)]

    def _profile_step(self, lane: Lane, number: int, candidate: Candidate, artifact: Artifact) -> Step:
        def settled(result: CallResult, at_s: float) -> Sequence[Step]:
            return self._settle(lane, candidate, profiled(result), artifact, at_s)

        return Step(
            request=self._request(
                lane,
                2,
                StageKind.PROFILE,
                f"/{number}",
                DeviceDemand(key=self._spec.device_key),
                ANY_CORE,
            ),
            call=lambda: self._calls.profile(lane.progress, candidate, artifact),
            ended=settled,
            chances=_CHANCES,
        )

    def _settle(
        self, lane: Lane, candidate: Candidate, outcome: Outcome, artifact: Artifact | None, at_s: float
    ) -> Sequence[Step]:
        trial = Trial(candidate=candidate, outcome=outcome)
        self._keep(lane.progress.task, trial, artifact)
        lane.progress.add(trial, artifact)
        lane.progress.in_flight -= 1
        lane.trials.append(trial)
        self.spending.note(at_s)
        return self._one_less(lane)

    def _one_less(self, lane: Lane) -> Sequence[Step]:
        lane.left -= 1
        return [] if lane.left else [self._update_step(lane)]

    def _update_step(self, lane: Lane) -> Step:
        call = self._calls.update(lane.progress, lane.trials)
        return Step(
            request=self._request(lane, 3, StageKind.UPDATE, "", ANY_CORE, ANY_CORE),
            call=lambda: call,
            ended=lambda result, at_s: self._updated(lane, result, at_s),
        )

    def _updated(self, lane: Lane, result: CallResult, at_s: float) -> Sequence[Step]:
        if not isinstance(result, Returned):
            self._searches.close(lane.progress, result)
        return self._close_lane(lane, at_s)

    def _close_lane(self, lane: Lane, at_s: float) -> list[Step]:
        lane.progress.lanes -= 1
        del self._lanes[lane.name]
        self.batches_done += bool(lane.trials)
        return self._refill(at_s)

    def _canary_step(self, lane: Lane) -> Step:
        call = self._calls.canary(lane.progress, self._canary)

        def timed(result: CallResult, at_s: float) -> Sequence[Step]:
            if isinstance(result, Returned) and isinstance(result.value, Measurement):
                self.canary_s.append((at_s, result.value.best_s))
            return self._one_less(lane)

        demand = DeviceDemand(key=self._spec.device_key)
        request = self._request(lane, 2, "canary", "", demand, ANY_CORE)
        return Step(request=request, call=lambda: call, ended=timed, judges=_trouble)

    def _request(
        self, lane: Lane, step: int, kind: str, part: str, needs: Demand, then: Demand
    ) -> StageRequest:
        return StageRequest(
            id=f"{lane.name}/{kind}{part}",
            job=self._job,
            lane=lane.name,
            step=step,
            kind=str(kind),
            needs=needs,
            then=then,
            task=lane.progress.task.name,
            remaining_s=self.spending.remaining_s(),
            home=self._calls.search_worker(lane.progress) if kind in _SEARCHING else "",
        )


def _trouble(result: CallResult) -> str:
    """What a canary says of its device."""
    if not isinstance(result, Returned):
        return str(result)
    value = result.value
    return "" if isinstance(value, Measurement) else str(getattr(value, "message", value))
