"""Several executors on one store: one is killed, the others go on, nothing is lost and nothing made twice."""

import signal
import sqlite3
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import psycopg
import pytest

from support.commands import Workplace
from support.ending import ending
from support.warm import WarmInterpreter
from tuneloom.app.requests.job_specs import job_spec
from tuneloom.app.runs.asking import control
from tuneloom.app.runs.asking.log_replay import replay_log
from tuneloom.app.runs.settings import RunSettings
from tuneloom.app.runs.submitting import submit
from tuneloom.model import JobSpec
from tuneloom.store import JobStatus, RunStatus, Store, open_store

pytestmark = pytest.mark.integration
PATIENCE_S = 240.0
SLOW = "mock:tasks=2,size=4000,build=0.01,profile=0.05"
TRIALS = 15


class Onlooker:
    """Somebody beside a store's executors who sees whether one of them is in the middle of writing."""

    def __init__(self, place: str) -> None:
        self._served = place.startswith("postgresql")
        opened = psycopg.connect(place, autocommit=True) if self._served else _opened(place)
        self._connection: Any = opened

    def sees_writing(self) -> bool:
        """Whether a transaction is open; a statement may still be on its way to a server."""
        if not self._served:
            return self._finds_it_locked()
        time.sleep(0.1)
        return bool(self._connection.execute(BUSY).fetchone()[0])

    def _finds_it_locked(self) -> bool:
        try:
            self._connection.execute("BEGIN IMMEDIATE")
        except sqlite3.OperationalError:
            return True
        self._connection.execute("ROLLBACK")
        return False

    def close(self) -> None:
        self._connection.close()


def _opened(place: str) -> sqlite3.Connection:
    return sqlite3.connect(place, isolation_level=None, timeout=0.0)


BUSY = """
    SELECT count(*) FROM pg_stat_activity
    WHERE backend_type = 'client backend' AND state <> 'idle' AND pid <> pg_backend_pid()
"""


def _stands_still(pid: int) -> bool:
    """Whether all threads of a process are stopped."""
    stats = [path.read_text() for path in Path(f"/proc/{pid}/task").glob("*/stat")]
    return all(stat.rpartition(")")[2].split()[0] == "T" for stat in stats)


@pytest.fixture(params=["sqlite", "postgres"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "postgres":
        return str(request.getfixturevalue("postgres"))
    return str(tmp_path / "store.db")


class Executors:
    """Starts executors on one store and leaves none behind."""

    def __init__(self, place: str, workplace: Workplace) -> None:
        self._place = place
        self._workplace = workplace
        self.started: list[Any] = []

    def start(self, *words: str) -> Any:
        self.started.append(self._workplace.start("executor", "--store", self._place, *words))
        return self.started[-1]

    def killed_at(self, trials: int) -> None:
        """Start an executor that is killed when it has made so many trials, and wait for that."""
        words = ending(trials, signal.SIGKILL, "executor", "--store", self._place)
        self.started.append(self._workplace.start_python(*words))
        assert self.started[-1].wait(PATIENCE_S) == -signal.SIGKILL

    def wait_until(self, true: Callable[[], bool]) -> None:
        """Wait for something to happen while at least one of them lives."""
        end_s = time.monotonic() + PATIENCE_S
        while not true():
            assert time.monotonic() < end_s, "it never happened"
            living = [process for process in self.started if process.poll() is None]
            assert living, "all executors ended"
            with suppress(subprocess.TimeoutExpired):
                living[0].wait(0.05)

    def stop_between_writes(self, process: Any) -> None:
        """Stop an executor while it does not write: in the middle of that it would keep the store locked."""
        with closing(Onlooker(self._place)) as onlooker:
            self._stop(process)
            while onlooker.sees_writing():
                process.send_signal(signal.SIGCONT)
                time.sleep(0.01)
                self._stop(process)

    def _stop(self, process: Any) -> None:
        process.send_signal(signal.SIGSTOP)
        self.wait_until(lambda: _stands_still(process.pid))

    def end(self) -> None:
        for process in self.started:
            if process.poll() is None:
                process.kill()
            process.communicate()


@pytest.fixture
def executors(place: str, tmp_path: Path, warm: WarmInterpreter) -> Iterator[Executors]:
    several = Executors(place, Workplace(folder=tmp_path, warm=warm))
    yield several
    several.end()


@pytest.fixture
def store(place: str) -> Iterator[Store]:
    with closing(open_store(place)) as opened:
        yield opened


def job(name: str, trials: int = TRIALS) -> JobSpec:
    return job_spec({"name": name, "model": SLOW, "trials": trials, "batch": 4})


def trials(store: Store, run: str) -> int:
    return sum(store.trial_count(job.id) for job in store.jobs(run))


def test_when_one_executor_is_killed_another_goes_on_and_nothing_is_lost_or_made_twice(
    store: Store, executors: Executors, place: str
) -> None:
    runs = [submit(store, [job("a"), job("b")], RunSettings()).id for _ in range(2)]
    executors.killed_at(5)
    kept = {run: {r.id for job in store.jobs(run) for r in store.trials(job.id)} for run in runs}
    assert store.run(runs[0]).status is RunStatus.INTERRUPTED
    others = [executors.start("--until-idle") for _ in range(2)]
    assert [process.wait(PATIENCE_S) for process in others] == [0, 0]
    for run in runs:
        assert store.run(run).status is RunStatus.FINISHED
        for record in store.jobs(run):
            made = store.trials(record.id)
            assert record.status is JobStatus.FINISHED and len(made) == TRIALS
            assert len({(t.task_key, t.trial.candidate.key) for t in made}) == TRIALS
        assert kept[run] <= {r.id for job in store.jobs(run) for r in store.trials(job.id)}
        executor, found = replay_log(run, place)
        assert executor != run and found.equal and not found.differences, "its executor's log has it"


def test_an_executor_that_is_asked_to_end_gives_its_runs_back(
    store: Store, executors: Executors, place: str
) -> None:
    run = submit(store, [job("long", trials=2000)], RunSettings()).id
    first = executors.start()
    executors.wait_until(lambda: trials(store, run) >= 3)
    first.send_signal(signal.SIGTERM)
    assert first.wait(PATIENCE_S) == 0
    assert store.run(run).status is RunStatus.WAITING and store.lease_of(run) is None
    before = trials(store, run)
    executors.start()
    executors.wait_until(lambda: trials(store, run) > before)
    control.cancel(run, "long", place)
    executors.wait_until(lambda: store.run(run).status is RunStatus.FINISHED)
    assert store.jobs(run)[0].status is JobStatus.CANCELLED


def test_an_executor_that_was_thought_dead_writes_nothing_more_and_goes_on_with_others(
    store: Store, executors: Executors
) -> None:
    run = submit(store, [job("long", trials=2000)], RunSettings()).id
    first = executors.start()
    executors.wait_until(lambda: trials(store, run) >= 3)
    executors.stop_between_writes(first)
    lease = store.lease_of(run)
    assert lease is not None and lease.pid == first.pid
    store.release_run(lease, RunStatus.INTERRUPTED, "its lease ended")
    store.take_run(run, "other", PATIENCE_S)
    before = trials(store, run)
    first.send_signal(signal.SIGCONT)
    follower = submit(store, [job("next", trials=4)], RunSettings()).id
    executors.wait_until(lambda: store.run(follower).status is RunStatus.FINISHED)
    assert trials(store, run) == before
