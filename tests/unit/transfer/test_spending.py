"""Where the trials of a job go, on kernels whose gains are known: through the lanes that real jobs use."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

from support.jobs.small import drive
from support.samples.traces import tiled_space, tiled_trace
from tuneloom.app.reuse.job_reuse import JobReuse, follow
from tuneloom.app.tasks.progress import TaskProgress
from tuneloom.app.tuning.spending import Spending
from tuneloom.app.tuning.task_tuning import TaskTuning
from tuneloom.engine.calls import Call, CallResult, Returned
from tuneloom.model import Artifact, Budget, JobSpec, Measurement, Task, Trial
from tuneloom.store import Provenance, Store, open_store
from tuneloom.testing.jobs.fake_stages import FakeStages

HERE = Provenance(family="llvm-512", target="llvm", device_key="cpu")


@dataclass(frozen=True, slots=True, kw_only=True)
class Kernel:
    """A task whose time falls from its guess to its best as more is tried."""

    name: str
    best_s: float
    weight: int = 1
    guess: float = 2.0
    patience: float = 24.0
    kernel_class: str = "conv2d"

    @property
    def task(self) -> Task:
        work = 0.0 if self.kernel_class == "add" else 100 * self.best_s
        return Task(
            key=self.name, name=self.name, weight=self.weight, gflop=work, kernel_class=self.kernel_class
        )

    def time_s(self, trials: float) -> float:
        """What the trial after so many others takes; the default is far slower than all."""
        if trials < 1:
            return 50 * self.best_s
        return self.best_s * (1 + (self.guess - 1) / (1 + (trials - 1) / self.patience))


RESNET = [
    Kernel(name="stem", best_s=3.0, kernel_class="conv2d_max"),
    Kernel(name="lead", best_s=4.0, weight=3),
    Kernel(name="heavy", best_s=4.0, weight=2),
    Kernel(name="middle", best_s=2.0),
    *(Kernel(name=f"light{n}", best_s=0.2) for n in range(8)),
    *(Kernel(name=f"add{n}", best_s=0.1, guess=1.1, kernel_class="add") for n in range(4)),
]


@dataclass(slots=True)
class Curves(FakeStages):
    """Fake stages whose kernels follow their curves; a gift puts a kernel ahead by `gift` trials."""

    kernels: dict[str, Kernel] = field(default_factory=dict)
    gift: float = 24.0
    ahead: dict[str, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.profile = self._on_curve

    def _on_curve(self, task: Task, number: int) -> Measurement:
        ahead = self.ahead.get(task.key, 0.0) if number else 0.0
        return Measurement(seconds=(self.kernels[task.key].time_s(number + ahead),))

    def __call__(self, call: Call) -> CallResult:
        if call.function.endswith(":select") and len(call.arguments) > 2:
            key, count, seeds, _ = call.arguments
            name = self._searches[str(call.worker), key].task.key
            given = len(seeds) if name not in self.ahead else 0
            if seeds:
                self.ahead.setdefault(name, self.gift)
            return self._marked(FakeStages.__call__(self, replace(call, arguments=(key, count))), given)
        return FakeStages.__call__(self, call)

    def _marked(self, result: CallResult, given: int) -> CallResult:
        assert isinstance(result, Returned)
        gifts = [replace(c, origin="share:lead") for c in result.value[:given]]
        return Returned(value=gifts + result.value[given:])


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    opened = open_store(tmp_path / "store.db")
    yield opened
    opened.close()


def spent(store: Store, kernels: Sequence[Kernel], trials: int, reuse: str = "auto") -> TaskTuning:
    """Tune kernels to the end of a budget."""
    tasks = [kernel.task for kernel in kernels]
    job = store.add_job(store.create_run("tune").id, "net").id
    store.add_tasks(job, tasks, family=HERE.family, target=HERE.target)
    spec = JobSpec(name="net", model="net", budget=Budget(trials=trials), batch=16, reuse=reuse)
    progress = [TaskProgress(index, task) for index, task in enumerate(tasks)]

    def keep(task: Task, trial: Trial, _artifact: Artifact | None) -> None:
        number = int(trial.candidate.configuration)
        if number % 8 != 1:  # a few donors are enough, and committing takes long
            return
        tiles = [(64 // 2 ** (number % 4), 2 ** (number % 4)), (14, 4)]
        kept = replace(trial.candidate, configuration=tiled_trace(tiles))
        store.add_trial(job, task.key, replace(trial, candidate=kept), HERE)

    asking = JobReuse(store, job, spec)
    tuning = TaskTuning(
        job, spec, progress, keep, lanes=3, workers=1, reuse=asking if asking.wanted else None
    )
    if asking.wanted:
        asking.look([HERE.family], tasks, [tiled_space(task.key, 64, 56) for task in tasks])
        plan = asking.plan(tasks)
        follow(plan, progress)
        tuning.spending.most_trials = plan.trials
    drive(tuning.begin(0.0, b""), Curves(kernels={kernel.name: kernel for kernel in kernels}))
    return tuning


def trials_of(tuning: TaskTuning) -> dict[str, int]:
    return {progress.task.name: len(progress.trials) for progress in tuning.tasks}


def floor_s(kernels: Sequence[Kernel]) -> float:
    return sum(kernel.weight * kernel.best_s for kernel in kernels)


def test_the_whole_budget_is_spent(store: Store) -> None:
    assert spent(store, RESNET, 400).spent == 400


def test_trials_go_where_the_models_time_is(store: Store) -> None:
    trials = trials_of(spent(store, RESNET, 400))
    light = max(count for name, count in trials.items() if name.startswith(("light", "add")))
    assert min(trials["lead"], trials["heavy"]) > 64
    assert trials["stem"] > 32 > light
    assert trials["heavy"] >= trials["middle"] > light


def test_a_heavy_member_is_refined_however_large_its_cluster(store: Store) -> None:
    crowd = [*RESNET[:3], *(Kernel(name=f"light{n}", best_s=0.1) for n in range(20))]
    trials = trials_of(spent(store, crowd, 400))
    assert trials["heavy"] > 64


@pytest.mark.parametrize("trials", [200, 500])
def test_reuse_is_no_worse_than_tuning_every_task_on_its_own(store: Store, trials: int) -> None:
    shared, alone = (spent(store, RESNET, trials, reuse).latency_s for reuse in ("auto", "off"))
    assert shared is not None and alone is not None
    assert floor_s(RESNET) < shared <= 1.01 * alone


def test_sharing_takes_a_quarter_of_the_trials_and_makes_more_of_them(store: Store) -> None:
    budget = 48 * len(RESNET)
    shared = spent(store, RESNET, budget, "share")
    alone = spent(store, RESNET, shared.spent, "off")
    assert alone.spent == shared.spent <= budget / 4
    assert shared.latency_s is not None and alone.latency_s is not None
    assert shared.latency_s < 0.98 * alone.latency_s


def test_a_kernel_with_nothing_like_it_is_not_forgotten(store: Store) -> None:
    unlike = [Kernel(name="dense", best_s=2.0, kernel_class="dense"), *RESNET[1:4]]
    trials = trials_of(spent(store, unlike, 300))
    assert trials["dense"] > 24


def test_a_slow_default_attracts_no_trials(store: Store) -> None:
    """What the first schedule gained over the default says nothing about what the next will gain."""
    done = [Kernel(name=f"done{n}", best_s=1.0, guess=1.001, kernel_class=f"a{n}") for n in range(3)]
    open_end = [Kernel(name=f"open{n}", best_s=1.0, guess=3.0, kernel_class=f"b{n}") for n in range(3)]
    trials = trials_of(spent(store, [*done, *open_end], 240, "off"))
    assert sum(trials[f"open{n}"] for n in range(3)) > 1.2 * sum(trials[f"done{n}"] for n in range(3))


def first_batch(store: Store, kernel: Kernel, trials: int) -> tuple[int, int]:
    """How many trials a kernel of a new job begins with, and how many of them are gifts."""
    job = store.add_job(store.create_run("tune").id, "new").id
    spec = JobSpec(name="new", model="new", budget=Budget(trials=trials), batch=16)
    asking = JobReuse(store, job, spec)
    asking.look([HERE.family], [kernel.task], [tiled_space(kernel.name, 64, 56)])
    asking.plan([kernel.task], keep=False)
    progress = TaskProgress(0, kernel.task)
    return Spending(spec, [progress], asking).next_batch(progress), asking.prepare(progress)


def test_a_kernel_that_is_given_anothers_schedules_tries_what_the_tuner_guesses_as_well(store: Store) -> None:
    spent(store, RESNET[1:2], 40)
    trials, gifts = first_batch(store, Kernel(name="like lead", best_s=4.0), 16)
    assert gifts > 0
    assert trials >= 1 + gifts + 1, "the default, the gifts and a guess"


def test_a_kernel_that_was_tuned_before_starts_from_its_own_records_alone(store: Store) -> None:
    spent(store, RESNET[1:2], 40)
    trials, gifts = first_batch(store, RESNET[1], 16)
    assert gifts > 0
    assert trials == 1 + gifts
