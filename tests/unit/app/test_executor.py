"""What an executor asks of the store, however many runs it holds."""

import gc
from collections.abc import Iterator, Mapping
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Engine, event

from tuneloom.app.farm.aiming import Aiming
from tuneloom.app.requests.job_specs import job_spec
from tuneloom.app.runs.executing.executor import Executor
from tuneloom.app.runs.executing.heartbeat import Heartbeat
from tuneloom.engine.calls import Call, Returned
from tuneloom.engine.machine import Fleet, Offer
from tuneloom.errors import StoreError, TargetError
from tuneloom.model import Candidate, Device, Host, JobSpec, Measurement, ModelSummary, Task, Trial
from tuneloom.store import JobStatus, RunStatus, Store, WishKind, open_store
from tuneloom.testing.engines.scripted import ScriptedEngine

SUMMARY = ModelSummary(
    name="net", digest="0", target="llvm", family="llvm", tasks=(Task(key="t", name="dense"),)
)
HERE = Fleet(
    offers=(Offer(resource=Host(name="host", slots=2)), Offer(resource=Device(name="cpu0", key="cpu")))
)
RUNS = 25


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with closing(open_store(tmp_path / "store.db")) as opened:
        yield opened


@pytest.fixture
def written(store: Store) -> Iterator[list[str]]:
    """Every transaction that writes, as it begins."""
    found: list[str] = []

    def note(_connection: Any, _cursor: Any, statement: str, *_: Any) -> None:
        if statement == "BEGIN IMMEDIATE":
            found.append(statement)

    event.listen(Engine, "before_cursor_execute", note)
    yield found
    event.remove(Engine, "before_cursor_execute", note)


def holding(store: Store, **options: Any) -> Executor:
    """An executor that has just claimed everything there is."""
    engine = ScriptedEngine(lambda call: Returned(value=f"answer to {call.function}"))
    heartbeat = Heartbeat(lambda: store)
    executor = Executor(store, engine, HERE, "load-aware", heartbeat, most_runs=RUNS, **options)
    executor.beat(1.0)
    return executor


def submitted(store: Store, name: str = "net") -> str:
    spec = job_spec({"name": name, "model": "mock:size=8", "trials": 4})
    return store.submit_run("tune", [(spec.name, spec.to_json())]).id


def test_what_is_noted_about_all_runs_is_written_at_once_and_nothing_if_nothing_changed(
    store: Store, written: list[str]
) -> None:
    runs = [submitted(store) for _ in range(RUNS)]
    executor = holding(store)
    assert sorted(executor.runs) == sorted(runs)
    written.clear()
    executor.beat(2.0)
    assert len(written) == 1
    assert all(store.view(run) for run in runs)
    executor.beat(3.0)
    executor.beat(4.0)
    assert len(written) == 1


def test_looking_for_work_locks_nothing_while_there_is_none(store: Store, written: list[str]) -> None:
    executor = holding(store)
    written.clear()
    executor.beat(2.0)
    assert (written, executor.runs) == ([], {})


def test_a_run_that_another_took_is_dropped_and_the_others_are_written(store: Store, tmp_path: Path) -> None:
    lost, kept = submitted(store), submitted(store)
    executor = holding(store)
    with closing(open_store(tmp_path / "store.db")) as other:
        lease = other.lease_of(lost)
        assert lease is not None
        other.release_run(lease, RunStatus.INTERRUPTED)
    executor.beat(2.0)
    assert (list(executor.runs), executor.lost) == ([kept], [lost])
    assert (store.view(lost), store.view(kept) is not None) == (None, True)


@pytest.mark.parametrize(("key", "lines"), [("cpu", 1), ("h200", 0)])
def test_who_else_uses_a_device_is_said_where_a_job_measures_on_such_a_device(
    store: Store, key: str, lines: int, caplog: pytest.LogCaptureFixture
) -> None:
    submitted(store)
    executor = holding(store)
    executor.listener.resource_joined(Offer(resource=Device(name="other", key=key)), 1.0)
    executor.listener.resource_disturbed("other", "python3 (pid 7)", 2.0)
    assert len(caplog.records) == lines


def test_news_let_wishes_be_granted_before_the_next_look(store: Store) -> None:
    run = submitted(store)
    executor = holding(store, news=lambda: True)
    store.add_wish(run, WishKind.PAUSE, f"{run}.1")
    executor.beat(1.1)
    assert store.job(f"{run}.1").status is JobStatus.PAUSED
    assert store.open_wishes(run) == []


def hear(executor: Executor) -> None:
    """Let the conductor hear what was answered, and nothing else."""
    for report in executor.conductor._inbox.reports(60.0):
        raise AssertionError(report)


def asking(spec: JobSpec) -> Aiming:
    """Asks devices for the jobs that say so."""
    if spec.name == "net":
        return spec
    (answer,) = yield [Call(function="m:target")]
    assert isinstance(answer, Returned)
    return replace(spec, target=str(answer.value))


def test_a_job_is_aimed_at_its_device_before_it_is_taken(store: Store) -> None:
    run = submitted(store, "remote")
    executor = holding(store, aim=asking)
    assert executor.runs[run].programs == {} and not executor.runs[run].ended
    hear(executor)
    assert executor.runs[run].programs[f"{run}.1"].spec.target == "answer to m:target"
    assert store.job(f"{run}.1").status is JobStatus.RUNNING


def test_other_jobs_are_taken_while_a_device_is_asked(store: Store) -> None:
    remote, here = submitted(store, "remote"), submitted(store)
    executor = holding(store, aim=asking)
    assert executor.runs[remote].programs == {} and f"{here}.1" in executor.runs[here].programs


def test_a_job_that_is_cancelled_while_its_device_is_asked_never_begins(store: Store) -> None:
    run = submitted(store, "remote")
    executor = holding(store, aim=asking)
    store.add_wish(run, WishKind.CANCEL, f"{run}.1")
    executor.beat(2.0)
    hear(executor)
    assert store.job(f"{run}.1").status is JobStatus.CANCELLED
    assert run not in executor.runs and executor.conductor.idle


def test_a_job_that_is_paused_while_its_device_is_asked_is_taken_paused(store: Store) -> None:
    run = submitted(store, "remote")
    executor = holding(store, aim=asking)
    store.add_wish(run, WishKind.PAUSE, f"{run}.1")
    executor.beat(2.0)
    hear(executor)
    assert f"{run}.1" in executor.runs[run].programs
    assert store.job(f"{run}.1").status is JobStatus.PAUSED


def test_the_answer_for_a_run_that_another_took_is_ignored(store: Store, tmp_path: Path) -> None:
    run = submitted(store, "remote")
    executor = holding(store, aim=asking)
    with closing(open_store(tmp_path / "store.db")) as other:
        lease = other.lease_of(run)
        assert lease is not None
        other.release_run(lease, RunStatus.INTERRUPTED)
    executor.beat(2.0)
    assert executor.lost == [run] and executor.conductor.idle


def test_a_job_that_no_device_can_be_aimed_at_fails_alone(store: Store) -> None:
    def aim(spec: JobSpec) -> Aiming:
        yield from ()
        if spec.name == "bad":
            raise TargetError("its target is for another machine", field="target")
        return spec

    bad, good = submitted(store, "bad"), submitted(store)
    executor = holding(store, aim=aim)
    assert store.job(f"{bad}.1").status is JobStatus.FAILED
    assert "another machine" in str(store.job(f"{bad}.1").result["failure"])
    assert good in executor.runs and bad not in executor.runs


def taken_by_another(store: Store, tmp_path: Path, run: str, status: RunStatus) -> None:
    with closing(open_store(tmp_path / "store.db")) as other:
        lease = other.lease_of(run)
        assert lease is not None
        other.release_run(lease, status)


def go_on(executor: Executor, now_s: float) -> None:
    """Let jobs begin that are due, and what was decided be carried out, then see to the rest."""
    executor.conductor._admit()
    executor.conductor._dispatch.carry_out()
    executor.beat(now_s)


def test_a_job_whose_file_is_gone_fails_and_the_executor_goes_on(store: Store) -> None:
    spec = job_spec({"name": "bad", "model": "model.onnx", "trials": 4})
    lost = replace(spec, files={"model.onnx": "0" * 64})
    bad = store.submit_run("tune", [(lost.name, lost.to_json())]).id
    good = submitted(store)
    executor = holding(store)
    assert list(executor.runs) == [good]
    assert (store.job(f"{bad}.1").status, store.run(bad).status) == (JobStatus.FAILED, RunStatus.FAILED)
    assert "000000" in str(store.job(f"{bad}.1").result["failure"])


def test_a_run_that_was_lost_and_comes_back_goes_on(store: Store, tmp_path: Path) -> None:
    run = submitted(store)
    executor = holding(store)
    go_on(executor, 2.0)
    assert list(executor.conductor.core.jobs) == [f"{run}.1"]
    taken_by_another(store, tmp_path, run, RunStatus.WAITING)
    executor.runs[run].book.logged_with("another")
    executor.beat(4.0)
    assert executor.lost == [run]
    executor.beat(6.0)
    go_on(executor, 8.0)
    assert list(executor.runs) == [run] and list(executor.conductor.core.jobs) == [f"{run}.1"]
    assert store.job(f"{run}.1").status is JobStatus.RUNNING
    executor.conductor.core.check()


def test_the_new_priority_of_a_running_job_is_stored_for_whoever_goes_on_with_it(store: Store) -> None:
    run = submitted(store)
    executor = holding(store)
    go_on(executor, 2.0)
    store.add_wish(run, WishKind.PRIORITY, f"{run}.1", {"priority": 7})
    executor.beat(4.0)
    assert executor.conductor.core.jobs[f"{run}.1"].ticket.priority == 7
    assert store.job(f"{run}.1").spec["priority"] == 7 and store.open_wishes(run) == []


def keep_one(executor: Executor, run: str, key: str) -> None:
    """Let a job of a run keep a trial, as a program does."""
    task = Task(key="t", name="dense")
    book, job = executor.runs[run].book, f"{run}.1"
    book.opened(job, executor.runs[run].programs[job].spec, SUMMARY)
    candidate = Candidate(key=key, configuration="{}")
    book.keep(job, task, Trial(candidate=candidate, outcome=Measurement(seconds=(1.0,))), None)


def test_trials_of_all_runs_are_committed_in_one_transaction_and_told_afterwards(
    store: Store, written: list[str]
) -> None:
    told: list[tuple[str, int]] = []
    runs = [submitted(store) for _ in range(5)]
    executor = holding(store, on_trial=lambda job, _trial: told.append((job, store.trial_count(job))))
    for run in runs:
        keep_one(executor, run, "a")
        keep_one(executor, run, "b")
    assert told == []
    written.clear()
    executor.listener.commit()
    executor.listener.commit()
    assert len(written) == 1
    assert told == [(f"{run}.1", 2) for run in runs for _ in range(2)]


def test_a_run_whose_trials_can_not_be_written_is_given_back_and_no_other(store: Store) -> None:
    bad, good = submitted(store), submitted(store)
    executor = holding(store)
    keep_one(executor, bad, "a")
    keep_one(executor, good, "a")
    executor.runs[bad].book.keep(
        f"{bad}.1",
        Task(key="unknown", name="dense"),
        Trial(candidate=Candidate(key="b", configuration="{}"), outcome=Measurement(seconds=(1.0,))),
        None,
    )
    executor.listener.commit()
    assert list(executor.runs) == [good] and list(executor.failures) == [bad] and executor.lost == []
    assert (store.trial_count(f"{bad}.1"), store.trial_count(f"{good}.1")) == (0, 1)
    assert store.run(bad).status is RunStatus.INTERRUPTED
    assert "has no task 'unknown'" in store.run(bad).message


def test_what_can_not_be_written_at_the_end_of_a_job_ends_its_run_and_no_other(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    bad, good = submitted(store), submitted(store)
    executor = holding(store)
    go_on(executor, 2.0)
    write = store.set_job

    def full(job: str, status: JobStatus, result: Mapping[str, Any] | None = None) -> None:
        if job.startswith(bad):
            raise StoreError("the disk is full")
        write(job, status, result)

    monkeypatch.setattr(store, "set_job", full)
    for run in (bad, good):
        executor.conductor.cancel(f"{run}.1")
    go_on(executor, 4.0)
    assert str(executor.failures[bad]) == "the disk is full" and executor.runs == {}
    assert store.job(f"{good}.1").status is JobStatus.CANCELLED
    assert (store.run(bad).status, store.run(good).status) == (RunStatus.INTERRUPTED, RunStatus.FINISHED)


def test_garbage_is_looked_for_rarely_while_runs_are_carried_out_and_as_usual_afterwards(
    store: Store,
) -> None:
    usual, seen = gc.get_threshold(), set()

    def answer(call: Call) -> Returned:
        seen.add(gc.get_threshold()[0])
        return Returned(value=None)

    submitted(store)
    engine = ScriptedEngine(answer)
    executor = Executor(store, engine, HERE, "load-aware", Heartbeat(lambda: store), most_runs=1)
    executor.serve(until_idle=True)
    assert seen and min(seen) > usual[0]
    assert gc.get_threshold() == usual


@pytest.mark.parametrize("machines", [1, 2])
def test_the_last_job_on_the_only_machine_knows_that_it_is_alone(
    store: Store, monkeypatch: pytest.MonkeyPatch, machines: int
) -> None:
    far = Offer(resource=Device(name="cpu1", key="cpu", machine="far"))
    first, other = submitted(store), submitted(store)
    executor = holding(store)
    executor.machine = Fleet(offers=(*HERE.offers, far)[: len(HERE.offers) + machines - 1])
    held, program = executor.runs[first], executor.runs[first].programs[f"{first}.1"]
    context = held._context(f"{first}.1", program.spec)  # type: ignore[attr-defined]
    assert not context.is_only_job()
    executor.runs[other].move(f"{other}.1", JobStatus.CANCELLED)
    assert context.is_only_job() is (machines == 1)
