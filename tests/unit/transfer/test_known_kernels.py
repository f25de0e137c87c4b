"""A model on a GPU whose kernels were tuned before: few trials give the best that is known at once."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

from support.jobs.small import drive, small_context, small_spec
from tuneloom.app.kinds.model.job import ModelJob
from tuneloom.app.reuse.job_reuse import JobReuse
from tuneloom.engine.calls import Call, CallResult, Died, KilledBy, Returned
from tuneloom.model import (
    Artifact,
    Candidate,
    CheckResult,
    Failure,
    FailureKind,
    Measurement,
    ModelSummary,
    Task,
    TaskSpace,
    Trial,
)
from tuneloom.store import Provenance, Store, open_store
from tuneloom.testing.jobs.fake_stages import FakeStages, point

HERE = Provenance(family="sm_90", target="cuda", device_key="cpu")
BEST = 'triton:{"tile": 64}'
FASTER = 'triton:{"tile": 96}'
LUCKY = 'triton:{"tile": 48}'
TRIED_S = {b"best": 1e-4, b"lucky": 9.8e-5, b"other": 5e-4}
TASKS = tuple(
    Task(key=f"sm_90-{n}", name=f"matmul{n}", weight=1, gflop=1.0, kernel_class="matmul") for n in range(5)
)
SUMMARY = ModelSummary(
    name="net", digest="d", target='{"kind": "cuda", "arch": "sm_90"}', family="sm_90", tvm_version="0",
    tasks=TASKS, inputs=(), outputs=(),
    canary=b"", facts={},
)  # fmt: skip


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    """A store in which every kernel has its best configuration, 0.1 ms, and a slower one."""
    opened = open_store(tmp_path / "store.db")
    job = opened.add_job(opened.create_run("tune").id, "net").id
    opened.add_tasks(job, list(TASKS), family=HERE.family, target=HERE.target)
    for task in TASKS:
        for text, seconds in ((BEST, 1e-4), ('triton:{"tile": 32}', 5e-4)):
            found = Candidate(key=text, configuration=text)
            opened.add_trial(
                job, task.key, Trial(candidate=found, outcome=Measurement(seconds=(seconds,))), HERE
            )
    yield opened
    opened.close()


class Workers:
    """Answers all calls of a job; the search proposes the default and numbered points, or also its seeds."""

    def __init__(self, *, described: CallResult | None = None, seeds: bool = False) -> None:
        spaces = [TaskSpace(task_key=task.key, sketches=()) for task in TASKS]
        self.stages, self.seeds, self.calls = FakeStages(), seeds, list[str]()
        self.own: dict[str, CallResult] = {
            "open_model": Returned(value=SUMMARY),
            "describe": described or Returned(value=spaces),
            "compile_plain": Returned(value=None),
            "compile_guesses": Returned(value=True),
            "compile_model": Returned(value={}),
            "check_model": Returned(value=CheckResult(difference=0.0, tuned_s=(1.0,), untuned_s=(2.0,))),
        }

    def __call__(self, call: Call) -> CallResult:
        function = call.function.partition(":")[2]
        self.calls.append(function)
        if function == "contest":
            return Returned(value=[[1e-4 if payload == b"best" else 1e-3] for payload in call.arguments[0]])
        if function == "open_and_select" and self.seeds:
            given = [
                Candidate(key=seed.configuration, configuration=seed.configuration, origin=seed.origin)
                for seed in call.arguments[3].seeds
            ]
            return Returned(value=[point(0), *given][: call.arguments[5]])
        if function == "build" and call.arguments[2].configuration.startswith("triton"):
            payload = {BEST: b"best", LUCKY: b"lucky"}.get(call.arguments[2].configuration, b"other")
            return Returned(value=Artifact(payload=payload))
        if function == "profile" and call.arguments[2].payload in TRIED_S:
            return Returned(value=Measurement(seconds=(TRIED_S[call.arguments[2].payload],)))
        return self.own.get(function) or self.stages(call)


def finished(store: Store, trials: int, workers: Workers, *, self_contained: bool = False) -> ModelJob:
    job = store.add_job(store.create_run("tune").id, "net").id
    store.add_tasks(job, list(TASKS), family=HERE.family, target=HERE.target)
    spec = replace(small_spec(trials), self_contained=self_contained)
    context = replace(small_context(spec, job=job), store=store)
    program = ModelJob(context)
    drive(program.begin(0.0), workers)
    assert program.done and program.failure is None and program.finish is not None
    return program


def used(program: ModelJob) -> set[str]:
    assert program.finish is not None
    assert program.finish.choices.schedules.keys() == {task.key for task in TASKS}
    return set(program.finish.choices.schedules.values())


@pytest.mark.parametrize("trials", [1, 3, 12, 40])
@pytest.mark.parametrize("seeds", [False, True], ids=["by contests", "by seeds"])
def test_every_kernel_ends_with_the_best_known_however_few_trials_there_are(
    store: Store, trials: int, seeds: bool
) -> None:
    program = finished(store, trials, Workers(seeds=seeds))
    assert used(program) == {BEST}
    assert program.tuning is not None and program.tuning.spent <= trials


def test_a_default_that_fails_does_not_hide_what_is_known(store: Store) -> None:
    workers = Workers()
    workers.stages.build = lambda _task, number: (
        Artifact(payload=str(number).encode())
        if number
        else Failure(kind=FailureKind.BUILD_ERROR, message="no schedule")
    )
    assert used(finished(store, 5, workers)) == {BEST}


def test_what_is_known_counts_where_spaces_could_not_be_described(store: Store) -> None:
    workers = Workers(described=Died(cause=KilledBy(9)))
    assert used(finished(store, 2, workers)) == {BEST}


@pytest.mark.parametrize("seeds", [False, True], ids=["by contests", "by seeds"])
def test_schedules_of_the_very_same_kernels_are_not_weighed_in_the_model(store: Store, seeds: bool) -> None:
    workers = Workers(seeds=seeds)
    finished(store, 12, workers)
    assert "check_model" in workers.calls and "slower_in_model" not in workers.calls


@pytest.mark.parametrize(("alone", "best"), [(False, 'cublaslt:{"algorithm": 3}'), (True, BEST)])
def test_a_self_contained_model_uses_no_record_of_a_library(
    store: Store, monkeypatch: pytest.MonkeyPatch, alone: bool, best: str
) -> None:
    job = store.add_job(store.create_run("tune").id, "net").id
    store.add_tasks(job, list(TASKS), family=HERE.family, target=HERE.target)
    fastest = Candidate(key="library", configuration='cublaslt:{"algorithm": 3}')
    for task in TASKS:
        store.add_trial(job, task.key, Trial(candidate=fastest, outcome=Measurement(seconds=(5e-5,))), HERE)
    implementers = (
        SimpleNamespace(name="triton", requirements=()),
        SimpleNamespace(name="cublaslt", requirements=(1,)),
    )
    backend = SimpleNamespace(implementers=lambda _target: implementers, on_host=False)
    monkeypatch.setattr("tuneloom.app.kinds.model.job.backend_of_text", lambda _text: backend)
    program = finished(store, 1, Workers(), self_contained=alone)
    assert program.finish is not None
    assert [program.finish.choices.schedules[task.key] for task in TASKS[1:]] == [best] * (len(TASKS) - 1)


def tried_once(store: Store, text: str, seconds: float) -> None:
    """A job that was cut short tried this configuration of every kernel, and measured it once."""
    job = store.add_job(store.create_run("tune").id, "net").id
    store.add_tasks(job, list(TASKS), family=HERE.family, target=HERE.target)
    found = Candidate(key=text, configuration=text)
    for task in TASKS:
        store.add_trial(job, task.key, Trial(candidate=found, outcome=Measurement(seconds=(seconds,))), HERE)


@pytest.mark.parametrize("seeds", [False, True], ids=["by contests", "by seeds"])
@pytest.mark.parametrize("trials", [1, 12])
def test_what_won_side_by_side_is_used_again_and_not_what_was_lucky_in_a_trial(
    store: Store, trials: int, seeds: bool
) -> None:
    tried_once(store, LUCKY, TRIED_S[b"lucky"])
    first = finished(store, 40, Workers(seeds=True))
    assert used(first) == {BEST}
    first.settle()
    assert used(finished(store, trials, Workers(seeds=seeds))) == {BEST}


def test_a_record_that_is_clearly_faster_than_what_won_is_used_without_another_contest(store: Store) -> None:
    tried_once(store, LUCKY, TRIED_S[b"lucky"])
    finished(store, 40, Workers(seeds=True)).settle()
    tried_once(store, FASTER, 8e-5)
    program = finished(store, 1, Workers())
    assert program.finish is not None
    assert [program.finish.choices.schedules[task.key] for task in TASKS[1:]] == [FASTER] * (len(TASKS) - 1)


def test_a_tenant_notes_no_contest_with_records_of_others(store: Store) -> None:
    tried_once(store, LUCKY, TRIED_S[b"lucky"])
    program = finished(store, 12, Workers())
    met = {key: [(s, c.trial) for s, c in v.contest] for key, v in program.finish.choices.verdicts.items()}  # type: ignore[union-attr]
    assert any(met.values())
    JobReuse(store, program.job, program.spec, reader="someone").keep_contests(met)
    assert not [r for task in TASKS for r in store.workload_trials(task.key, "sm_90", 9) if r.contest_s]
