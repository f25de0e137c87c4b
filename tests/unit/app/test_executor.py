"""What an executor asks of the store, however many runs it holds."""

from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Engine, event

from tuneloom.app.requests.job_specs import job_spec
from tuneloom.app.runs.executor import Executor
from tuneloom.app.runs.heartbeat import Heartbeat
from tuneloom.engine.calls import Returned
from tuneloom.engine.machine import Machine
from tuneloom.model import Device, Host
from tuneloom.store import JobStatus, RunStatus, Store, WishKind, open_store
from tuneloom.testing.scripted_engine import ScriptedEngine

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


def holding(store: Store, news: Callable[[], bool] = lambda: False) -> Executor:
    """An executor that has just claimed everything there is."""
    engine = ScriptedEngine(lambda _call: Returned(value=None))
    heartbeat = Heartbeat(lambda: store)
    executor = Executor(store, engine, HERE, "load-aware", heartbeat, most_runs=RUNS, news=news)
    executor.beat(1.0)
    return executor


def submitted(store: Store) -> str:
    spec = job_spec({"name": "net", "model": "mock:size=8", "trials": 4})
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


def test_news_let_wishes_be_granted_before_the_next_look(store: Store) -> None:
    run = submitted(store)
    executor = holding(store, news=lambda: True)
    store.add_wish(run, WishKind.PAUSE, f"{run}.1")
    executor.beat(1.1)
    assert store.job(f"{run}.1").status is JobStatus.PAUSED
    assert store.open_wishes(run) == []
