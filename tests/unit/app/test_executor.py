"""What an executor asks of the store, however many runs it holds."""

from collections.abc import Iterator
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
from tuneloom.engine.machine import Machine, Offer
from tuneloom.errors import TargetError
from tuneloom.model import Device, Host, JobSpec
from tuneloom.store import JobStatus, RunStatus, Store, WishKind, open_store
from tuneloom.testing.engines.scripted import ScriptedEngine

HERE = Machine(host=Host(name="host", slots=2), devices=(Device(name="cpu0", key="cpu"),))
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
    executor.resource_joined(Offer(resource=Device(name="other", key=key)), 1.0)
    executor.resource_disturbed("other", "python3 (pid 7)", 2.0)
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
    answer = yield Call(function="m:target")
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
