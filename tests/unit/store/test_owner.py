"""A run is interrupted when the process that owned it is gone."""

import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from tuneloom.errors import StoreError
from tuneloom.store import RunStatus, Store, open_store
from tuneloom.store.running.owner import is_alive, this_process

CREATE = """
import sys
from tuneloom.store import open_store
store = open_store(sys.argv[1])
print(store.create_run("tune").id, flush=True)
sys.stdin.read()
"""


def start_run(path: Path) -> tuple["subprocess.Popen[str]", str]:
    """A process that owns a run until its standard input is closed."""
    process = subprocess.Popen(
        [sys.executable, "-c", CREATE, str(path)], text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert process.stdout is not None
    return process, process.stdout.readline().strip()


def test_this_process_is_alive() -> None:
    assert is_alive(this_process()) is True


def test_a_process_of_the_same_number_that_started_at_another_time_is_not_the_owner() -> None:
    assert is_alive(replace(this_process(), pid_started="1")) is False


@pytest.mark.parametrize("other", ["host", "boot", "pid_namespace"])
def test_a_process_that_can_not_be_seen_from_here_is_neither_alive_nor_dead(other: str) -> None:
    assert is_alive(replace(this_process(), **{other: "another"}, pid_started="1")) is None


def test_a_killed_run_is_interrupted_and_can_be_taken_over(tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    store: Store = open_store(path)
    process, run = start_run(path)
    assert store.run(run).status is RunStatus.RUNNING
    with pytest.raises(StoreError, match=f"worked on by process {process.pid}: stop that first"):
        store.take_run(run, "me", 30.0)
    process.kill()
    process.communicate()
    assert store.run(run).status is RunStatus.INTERRUPTED
    store.take_run(run, "me", 30.0)
    again = store.run(run)
    assert (again.status, again.pid) == (RunStatus.RUNNING, os.getpid())
    store.close()


class Clock:
    """A time of day that tests set."""

    now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Store, str, Clock]:
    """A run that an executor on another host holds for half a minute."""
    clock = Clock()
    store = open_store(tmp_path / "store.db", clock=clock)
    run = store.submit_run("tune", [("a", {})]).id
    monkeypatch.setattr("socket.gethostname", lambda: "elsewhere")
    open_store(tmp_path / "store.db", clock=clock).take_run(run, "other", 30.0)
    monkeypatch.undo()
    return store, run, clock


def test_a_run_of_another_host_is_not_robbed_while_its_lease_stands(
    elsewhere: tuple[Store, str, Clock],
) -> None:
    store, run, clock = elsewhere
    clock.now += 20
    assert store.run(run).status is RunStatus.RUNNING
    assert store.claim_run("me", 30.0) is None
    with pytest.raises(StoreError, match=r"carried out on host 'elsewhere' .* try again in 10 s"):
        store.take_run(run, "me", 30.0)


def test_a_run_of_another_host_is_taken_over_when_its_lease_has_ended(
    elsewhere: tuple[Store, str, Clock],
) -> None:
    store, run, clock = elsewhere
    clock.now += 31
    assert store.run(run).status is RunStatus.INTERRUPTED
    lease = store.claim_run("me", 30.0)
    assert lease is not None and lease.run == run
    assert store.run(run).pid == os.getpid()


def test_a_living_process_that_does_not_renew_its_lease_loses_its_run_a_minute_later(tmp_path: Path) -> None:
    clock = Clock()
    store = open_store(tmp_path / "store.db", clock=clock)
    run = store.submit_run("tune", [("a", {})]).id
    store.take_run(run, "hung", 30.0)
    clock.now += 80
    assert store.claim_run("me", 30.0) is None
    clock.now += 20
    lease = store.claim_run("me", 30.0)
    assert lease is not None and (lease.run, lease.holder) == (run, "me")
    store.close()


def test_a_run_begun_elsewhere_by_a_program_without_leases_can_be_taken(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = open_store(tmp_path / "store.db")
    monkeypatch.setattr("socket.gethostname", lambda: "elsewhere")
    run = store.create_run("tune").id
    monkeypatch.undo()
    store.take_run(run, "me", 30.0)
    assert store.run(run).pid == os.getpid()
    store.close()
