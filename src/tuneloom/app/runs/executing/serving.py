"""A long-living executor: it carries out what others submit, until it is asked to end."""

from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager

from tuneloom.app.kinds.finding import kind_named
from tuneloom.app.kinds.registering import KINDS, registered
from tuneloom.app.runs.executing.bookkeeping import Book
from tuneloom.app.runs.executing.executor import Executor
from tuneloom.app.runs.executing.heartbeat import TTL_S, Heartbeat
from tuneloom.app.runs.settings import RunSettings
from tuneloom.app.runs.workforce import workforce_for_kinds
from tuneloom.scheduling import policy_named
from tuneloom.store import RunStatus, Store, open_store
from tuneloom.store.running.news import News

MOST_RUNS = 16
"""Runs that one executor weaves together at a time."""


def serve_runs(
    settings: RunSettings,
    *,
    until_idle: bool = False,
    most_runs: int = MOST_RUNS,
    began: Callable[[], None] = lambda: None,
) -> None:
    """Claim and carry out runs of a store; SIGTERM and Ctrl-C let running stages end and give runs back.

    What the scheduler decided is logged with a run of the executor's own, whose view shows its devices
    even while they are idle. With `until_idle` it ends when there is nothing left to claim. `began` is
    called when nothing can be refused any more.
    """
    policy_named(settings.policy)
    force = workforce_for_kinds([kind_named(name) for name in kind_entries()], settings)
    with (
        closing(force.engine),
        open_store(settings.store) as store,
        Heartbeat(lambda: open_store(settings.store)) as heartbeat,
        News(settings.store) as news,
    ):
        executor = Executor(
            store,
            force.engine,
            force.resources,
            settings.policy,
            heartbeat,
            most_runs=most_runs,
            news=news.came,
            aim=force.aiming,
        )
        with _logged(store, executor, heartbeat):
            began()
            executor.serve(until_idle=until_idle)


@contextmanager
def _logged(store: Store, executor: Executor, heartbeat: Heartbeat) -> Iterator[None]:
    """Give an executor a run of its own to log with; it ends with the block."""
    own = store.submit_run("executor", [], {"policy": executor.policy}, holder=executor.holder)
    heartbeat.watch(store.take_run(own.id, executor.holder, TTL_S))
    journal = Book(store, own.id)
    executor.begin(journal)
    try:
        yield
    finally:
        heartbeat.forget(own.id)
        journal.flush()
        store.finish_run(own.id, RunStatus.FINISHED)


def kind_entries() -> list[str]:
    """The kinds that are registered as such; tuners of strangers are loaded when a job asks for them."""
    return [point.name for point in registered(KINDS)]
