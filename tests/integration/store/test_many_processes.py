"""Several processes use one store at the same time."""

import os
from collections.abc import Callable

from support.contracts.store import CONV, HERE, job_with_tasks, measured
from tuneloom.errors import StoreError
from tuneloom.store import RunStatus, open_store

PROCESSES = 4


def all_succeed(work: Callable[[int], None]) -> bool:
    """Run the work in several forks at once; True if none of them failed."""
    children = [_fork(work, number) for number in range(PROCESSES)]
    return all(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0 for child in children)


def _fork(work: Callable[[int], None], number: int) -> int:
    child = os.fork()
    if child == 0:
        code = 1
        try:
            work(number)
            code = 0
        finally:
            os._exit(code)
    return child


def test_many_processes_create_one_store(place: str) -> None:
    def work(number: int) -> None:
        open_store(place).create_run(f"tune {number}")

    assert all_succeed(work)
    store = open_store(place)
    assert sorted(run.command for run in store.runs()) == [f"tune {n}" for n in range(PROCESSES)]
    store.close()


def test_a_candidate_sent_by_many_processes_is_kept_once(place: str) -> None:
    store = open_store(place)
    job = job_with_tasks(store)
    store.close()

    def work(number: int) -> None:
        own = open_store(place)
        for candidate in range(25):
            own.add_trial(job, CONV.key, measured(f"{candidate}", 1.0 + number), HERE)

    assert all_succeed(work)
    store = open_store(place)
    assert store.trial_count(job) == 25
    store.close()


def test_jobs_added_by_many_processes_get_different_numbers(place: str) -> None:
    store = open_store(place)
    run = store.create_run("tune").id
    store.close()

    def work(number: int) -> None:
        own = open_store(place)
        for job in range(5):
            own.add_job(run, f"{number}/{job}")

    assert all_succeed(work)
    store = open_store(place)
    assert [job.id for job in store.jobs(run)] == [f"{run}.{n}" for n in range(1, 5 * PROCESSES + 1)]
    store.close()


def test_only_one_of_many_processes_takes_a_run_over(place: str) -> None:
    store = open_store(place)
    run = store.create_run("tune").id
    store.finish_run(run, RunStatus.INTERRUPTED)
    store.close()
    go, won = os.pipe(), os.pipe()

    def work(number: int) -> None:
        try:
            open_store(place).take_run(run, str(number), 300.0)
            os.write(won[1], b"x")
        except StoreError:
            os.write(won[1], b".")
        os.read(go[0], 1)

    children = [_fork(work, number) for number in range(PROCESSES)]
    outcomes = b"".join(os.read(won[0], 1) for _ in children)
    os.write(go[1], b"go" * PROCESSES)
    for child in children:
        os.waitpid(child, 0)
    for end in (*go, *won):
        os.close(end)
    assert sorted(outcomes) == sorted(b"x" + b"." * (PROCESSES - 1))
