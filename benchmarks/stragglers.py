"""What stopping builds far beyond their kind brings, in simulated time.

The stages take what those of SqueezeNet took on two cores (`tuneloom stages`: builds have a median of
1.0 s and a 90th percentile of 1.85 s); a few builds never end. Everything but the compiler and the
clock is real: the tuning, the scheduling core, the conductor.
"""

import argparse
import json
from collections.abc import Callable
from math import exp, log
from pathlib import Path
from random import Random
from statistics import mean
from unittest.mock import patch

import from_nothing  # noqa: F401
import tests_on_path  # noqa: F401
from support.jobs.task_job import tune_tasks
from tuneloom.app.tuning import task_tuning
from tuneloom.app.tuning.stage_calls import BuildLimits
from tuneloom.engine.calls import Call, CallResult, TimedOut
from tuneloom.engine.machine import HOST, Fleet, Offer
from tuneloom.model import Artifact, Budget, Device, Host, JobSpec, Task
from tuneloom.testing.engines.scripted import ScriptedEngine
from tuneloom.testing.jobs.fake_stages import FakeStages

RESULTS = Path(__file__).parent / "results" / "stragglers.json"
TASKS = 20
STAGES_S = {"open_and_select": 0.5, "select": 0.25, "profile": 0.36, "update": 0.01}
MEDIAN_S, HIGH_S = 1.0, 1.85
_NORMAL_90 = 1.2816
DEVICE = Device(name="cpu0", key="cpu", lends_to=HOST)
MACHINE = Fleet(offers=(Offer(resource=Host(name=HOST, slots=1)), Offer(resource=DEVICE)))


class FixedLimits(BuildLimits):
    """Limits that learn nothing: the user's time limit holds for every build."""

    def learn(self, kernel_class: str, seconds: float) -> None:
        """Nothing is learned."""


def build_times(seed: int, trials: int, hanging: int) -> Callable[[Task, int], float]:
    """Seconds of every build; so many of the first trials never end."""
    random = Random(seed)
    spread = log(HIGH_S / MEDIAN_S) / _NORMAL_90
    hang = set(
        random.sample([(f"t{t}", n) for t in range(TASKS) for n in range(1, trials // TASKS)], hanging)
    )

    def seconds(task: Task, number: int) -> float:
        if (task.name, number) in hang:
            return 1e6
        return MEDIAN_S * exp(spread * Random(f"{seed}/{task.name}/{number}").gauss(0, 1))

    return seconds


def makespan_s(seed: int, trials: int, hanging: int, *, learned: bool) -> tuple[float, int]:
    """How long the tuning takes, and how many builds were stopped."""
    seconds = build_times(seed, trials, hanging)
    stages = FakeStages(build=lambda task, n: Artifact(payload=str(n).encode(), build_s=seconds(task, n)))

    def takes_s(call: Call) -> float:
        function = call.function.partition(":")[2]
        if function != "build":
            return STAGES_S[function]
        taken_s = seconds(call.arguments[1], int(call.arguments[2].configuration))
        return min(taken_s, call.timeout_s or taken_s)

    def answer(call: Call) -> CallResult:
        ended_s = takes_s(call)
        if call.function.endswith(":build") and ended_s == call.timeout_s:
            return TimedOut(after_s=ended_s)
        return stages(call)

    tasks = [Task(key=f"k{n}", name=f"t{n}", gflop=1.0 + n, kernel_class="conv2d") for n in range(TASKS)]
    spec = JobSpec(name="net", model="mock:", budget=Budget(trials=trials), seed=seed)
    engine = ScriptedEngine(answer, takes_s)
    with patch.object(task_tuning, "BuildLimits", BuildLimits if learned else FixedLimits):
        tuning = tune_tasks(tasks, spec, engine, MACHINE)
    return engine.now_s(), sum(sum(task.failures.values()) for task in tuning.tasks)


def main() -> None:
    """Compare both over seeds; prints and keeps every makespan."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--trials", type=int, default=600)
    parser.add_argument("--hanging", type=int, default=2)
    parser.add_argument("--seeds", type=int, default=20)
    options = parser.parse_args()
    rows = []
    for seed in range(options.seeds):
        fixed_s, _ = makespan_s(seed, options.trials, options.hanging, learned=False)
        learned_s, stopped = makespan_s(seed, options.trials, options.hanging, learned=True)
        rows.append({"seed": seed, "fixed_s": fixed_s, "learned_s": learned_s, "stopped": stopped})
    fixed_s, learned_s = mean(r["fixed_s"] for r in rows), mean(r["learned_s"] for r in rows)
    print(f"{options.trials} trials, {options.hanging} builds that never end, {options.seeds} seeds")
    print(f"time limit of 30 s {fixed_s:.1f} s, learned limits {learned_s:.1f} s: {learned_s / fixed_s:.3f}")
    print(f"builds stopped: {mean(r['stopped'] for r in rows):.2f} a run")
    RESULTS.write_text(json.dumps({"options": vars(options), "runs": rows}, indent=1) + "\n")


if __name__ == "__main__":
    main()
