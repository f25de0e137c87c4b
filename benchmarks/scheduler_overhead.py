"""What scheduling costs: one job under `sequential` against a bare loop over the same stages.

    python benchmarks/scheduler_overhead.py [--model zoo:squeezenet] [--trials 64] [--pairs 10]
    python benchmarks/scheduler_overhead.py --table          (draw the table again, run nothing)

Both sides tune one kernel with the same tuner, in workers of the same warm engine, on the same
cores, without a store: select a batch, build its candidates, profile them, update. They send
the same calls and keep the same notes of the trials; one side asks the core what to start, the
other is written down as a loop. They take turns, with the same seed within each pair.

The searches see real times, so their candidates differ a little, and some kernels take longer
than others: the ratio of wall times tells of this as well. What scheduling costs is the time a
trial that passes outside of stages, on one side more than on the other.
"""

import argparse
import json
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import count
from pathlib import Path
from statistics import median
from typing import Any

import tests_on_path  # noqa: F401
from support.jobs.task_job import tune_tasks
from tuneloom.app.conducting.calling import call_in_worker
from tuneloom.app.conducting.listening import Listener
from tuneloom.app.devices.describing import MachineOrder, describe
from tuneloom.app.kinds.model.kind import KIND
from tuneloom.app.tasks.outcomes import built, profiled
from tuneloom.app.tasks.progress import DEFAULT, TaskProgress
from tuneloom.app.tuning.stage_calls import STAGES
from tuneloom.engine.calls import Call, CallEnded, CallResult, Lost, Returned
from tuneloom.engine.local import LocalEngine
from tuneloom.engine.machine import Fleet
from tuneloom.model import (
    Artifact,
    Budget,
    Candidate,
    Device,
    Failure,
    Host,
    JobSpec,
    ModelRecipe,
    ModelSummary,
    SearchOptions,
    Task,
    Trial,
)
from tuneloom.store import SpanRecord

OUT = Path(__file__).parent / "results" / "scheduler_overhead.json"


@dataclass(frozen=True, slots=True, kw_only=True)
class Side:
    """One way of running the job: how long it took, how much of that was spent in stages."""

    trials: int
    wall_s: float
    stages_s: float

    @property
    def per_trial_s(self) -> float:
        return self.wall_s / self.trials

    @property
    def outside_s(self) -> float:
        """The time a trial in which no stage ran; stages side by side count as often as they are."""
        return (self.wall_s - self.stages_s) / self.trials


class BareLoop:
    """Rounds of select, build, profile and update, written down one after the other."""

    def __init__(self, engine: LocalEngine, machine: Fleet, task: Task, spec: JobSpec) -> None:
        self._engine, self._machine, self._task, self._spec = engine, machine, task, spec
        self._host = next(each.resource for each in machine.offers if isinstance(each.resource, Host))
        self._device = next(each.resource for each in machine.offers if isinstance(each.resource, Device))
        self._progress = TaskProgress(0, task)
        self._bare_task = replace(task, payload=b"")
        self._numbers: Iterator[int] = count()
        self.stages_s = 0.0

    @property
    def spent(self) -> int:
        return len(self._progress.trials)

    def run(self) -> None:
        while self.spent < self._spec.budget.trials:
            candidates = self._select(min(self._spec.batch, self._spec.budget.trials - self.spent))
            if not candidates:
                return
            self._update(self._profile(candidates, self._build(candidates)))

    def _select(self, wanted: int) -> list[Candidate]:
        key, spec = f"{self._spec.name}:0", self._spec
        options = SearchOptions(seed=spec.seed, trials=spec.budget.trials, batch=spec.batch)
        first: tuple[Any, ...] = (key, spec.tuner, self._task, options, [], wanted)
        name, arguments = ("select", (key, wanted)) if self.spent else ("open_and_select", first)
        result = self._call(Call(function=f"{STAGES}:{name}", arguments=arguments, worker=self._worker))
        assert isinstance(result, Returned), result
        found: list[Candidate] = self._progress.unseen(result.value)
        return found

    def _build(self, candidates: Sequence[Candidate]) -> list[Artifact | Failure]:
        rules = self._spec.measuring
        calls = [
            Call(
                function=f"{STAGES}:build",
                arguments=(self._spec.tuner, self._bare_task, candidate, rules),
                timeout_s=rules.build_timeout_s,
                memory_bytes=rules.memory_bytes,
            )
            for candidate in candidates
        ]
        return [built(result) for result in self._calls(calls, self._host.name, self._host.slots)]

    def _profile(
        self, candidates: Sequence[Candidate], artifacts: Sequence[Artifact | Failure]
    ) -> list[Trial]:
        trials = []
        for candidate, artifact in zip(candidates, artifacts, strict=True):
            made = None if isinstance(artifact, Failure) else artifact
            outcome = artifact if isinstance(artifact, Failure) else self._time(candidate, artifact)
            trials.append(Trial(candidate=candidate, outcome=outcome))
            self._progress.add(trials[-1], made)
        return trials

    def _time(self, candidate: Candidate, artifact: Artifact) -> Any:
        rules = self._spec.measuring
        best_s = 1e-9 if candidate.origin == DEFAULT else self._progress.best_s
        call = Call(
            function=f"{STAGES}:profile",
            arguments=(self._spec.tuner, self._bare_task, artifact, rules, best_s),
            timeout_s=rules.run_timeout_s,
            memory_bytes=rules.memory_bytes,
        )
        return profiled(self._calls([call], self._device.name, 1)[0])

    def _update(self, trials: list[Trial]) -> None:
        key = f"{self._spec.name}:0"
        self._call(Call(function=f"{STAGES}:update", arguments=(key, trials), worker=self._worker))

    def _call(self, call: Call) -> CallResult:
        return self._calls([call], self._host.name, 1)[0]

    def _calls(self, calls: Sequence[Call], resource: str, at_once: int) -> list[CallResult]:
        """Carry calls out on the cores of a resource, so many at a time; results in their order."""
        waiting = [(str(next(self._numbers)), call) for call in calls]
        order = [name for name, _ in waiting]
        results: dict[str, CallResult] = {}
        running = 0
        while len(results) < len(calls):
            while waiting and running < at_once:
                name, call = waiting.pop(0)
                self._engine.start(name, _on(call, self._machine, resource))
                running += 1
            for event in self._engine.poll(None):
                if isinstance(event, CallEnded):
                    assert not isinstance(event.result, Lost), event.result
                    results[event.id] = event.result
                    self.stages_s += event.ended_s - event.started_s
                    running -= 1
        return [results[name] for name in order]

    @property
    def _worker(self) -> str:
        return f"{self._spec.name}:tuner0"


def _on(call: Call, machine: Fleet, resource: str) -> Call:
    return Call(
        function=call.function,
        arguments=call.arguments,
        timeout_s=call.timeout_s,
        worker=call.worker,
        memory_bytes=call.memory_bytes,
        cores=next(each.cores for each in machine.offers if each.resource.name == resource),
    )


class StageClock(Listener):
    """Adds up the time that stages take."""

    def __init__(self) -> None:
        self.seconds = 0.0

    def ran(self, span: SpanRecord) -> None:
        self.seconds += span.end_s - span.start_s


def bare(engine: LocalEngine, machine: Fleet, task: Task, spec: JobSpec) -> Side:
    loop = BareLoop(engine, machine, task, spec)
    wall_s = timed(loop.run)
    return Side(trials=loop.spent, wall_s=wall_s, stages_s=loop.stages_s)


def scheduled(engine: LocalEngine, machine: Fleet, task: Task, spec: JobSpec) -> Side:
    clock, spent = StageClock(), [0]

    def run() -> None:
        tuning = tune_tasks([task], spec, engine, machine, policy="sequential", lanes=1, listener=clock)
        spent[0] = tuning.spent

    wall_s = timed(run)
    return Side(trials=spent[0], wall_s=wall_s, stages_s=clock.seconds)


def timed(function: Callable[[], None]) -> float:
    started = time.perf_counter()
    function()
    return time.perf_counter() - started


SIDES = {"bare": bare, "scheduled": scheduled}


def measure_pair(engine: LocalEngine, machine: Fleet, task: Task, trials: int, pair: int) -> dict[str, Any]:
    """Both sides once, with the same seed; who begins changes from pair to pair."""
    found: dict[str, Any] = {"pair": pair}
    for name in sorted(SIDES, reverse=bool(pair % 2)):
        spec = JobSpec(name=f"{name}-{pair}", model="", budget=Budget(trials=trials), seed=pair)
        found[name] = asdict(SIDES[name](engine, machine, task, spec))
        engine.release(f"{spec.name}:tuner0")
    return found


def measure(model: str, trials: int, pairs: int, out: Path) -> dict[str, Any]:
    recipe = ModelRecipe(key="overhead", source=model, shapes={}, target="cpu")
    summary: ModelSummary = call_in_worker("tuneloom.tuners.tvm.models.opening:open_model", recipe)
    task = max(summary.tasks, key=lambda each: each.weight * each.gflop)
    raw: dict[str, Any] = {"model": model, "task": task.name, "trials": trials, "pairs": []}
    engine = LocalEngine(KIND.warm_up)
    try:
        _warm(engine)
        for pair in range(pairs):
            raw["pairs"].append(measure_pair(engine, describe(MachineOrder()).fleet, task, trials, pair))
            print(f"pair {pair + 1} of {pairs} done", flush=True)
            out.parent.mkdir(parents=True, exist_ok=True)
            out.write_text(json.dumps(raw, indent=1) + "\n")
    finally:
        engine.close()
    return raw


def _warm(engine: LocalEngine) -> None:
    """Start the process that forks workers, so that neither side pays for it."""
    engine.start("warm", Call(function=f"{STAGES}:forget", arguments=("",)))
    while not engine.poll(None):
        pass


def table(raw: dict[str, Any]) -> str:
    """Medians over all pairs."""
    sides = {name: [Side(**pair[name]) for pair in raw["pairs"]] for name in SIDES}
    lines = ["| side | ms a trial | of these outside of stages |", "| --- | --- | --- |"]
    for name, measured in sides.items():
        per_trial_ms = median(side.per_trial_s for side in measured) * 1e3
        outside_ms = median(side.outside_s for side in measured) * 1e3
        lines.append(f"| {name} | {per_trial_ms:.2f} | {outside_ms:.2f} |")
    pairs = list(zip(sides["scheduled"], sides["bare"], strict=True))
    costs = [(core.outside_s - without.outside_s) / without.per_trial_s for core, without in pairs]
    ratios = [core.per_trial_s / without.per_trial_s for core, without in pairs]
    cost = f"What scheduling costs, median of {len(pairs)} pairs: {median(costs):+.2%} of a trial"
    wall = f"wall times, scheduled / bare: {median(ratios):.4f}"
    return "\n".join(
        [
            *lines,
            "",
            f"{cost} (from {min(costs):+.2%} to {max(costs):+.2%}); "
            f"{wall} (from {min(ratios):.4f} to {max(ratios):.4f}).",
        ]
    )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--model", default="zoo:squeezenet")
    parser.add_argument("--trials", type=int, default=64, help="of each side of a pair")
    parser.add_argument("--pairs", type=int, default=10)
    parser.add_argument("--out", type=Path, default=OUT)
    parser.add_argument("--table", action="store_true", help="draw the table of earlier results")
    options = parser.parse_args()
    if options.table:
        raw = json.loads(options.out.read_text())
    else:
        raw = measure(options.model, options.trials, options.pairs, options.out)
    print(table(raw))


if __name__ == "__main__":
    main()
