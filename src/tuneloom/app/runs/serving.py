"""A long-living executor: it carries out what others submit, until it is asked to end."""

from contextlib import closing

from tuneloom.app.kinds.finding import KINDS, kind_named
from tuneloom.app.runs.bookkeeping import Book
from tuneloom.app.runs.executor import Executor
from tuneloom.app.runs.heartbeat import Heartbeat
from tuneloom.app.runs.settings import RunSettings
from tuneloom.app.runs.workforce import workforce_for_kinds
from tuneloom.scheduling import policy_named
from tuneloom.store import RunStatus, open_store
from tuneloom.store.news import News

MOST_RUNS = 16
"""Runs that one executor weaves together at a time."""


def serve_runs(settings: RunSettings, *, until_idle: bool = False, most_runs: int = MOST_RUNS) -> None:
    """Claim and carry out runs of a store; SIGTERM and Ctrl-C let running stages end and give runs back.

    What the scheduler decided is logged with a run of the executor's own. With `until_idle` it ends
    when there is nothing left to claim.
    """
    policy_named(settings.policy)
    force = workforce_for_kinds([kind_named(name) for name in kind_entries()], settings)
    with closing(force.engine), closing(open_store(settings.store)) as store:
        own = store.create_run("executor", {"policy": settings.policy})
        with Heartbeat(lambda: open_store(settings.store)) as heartbeat, News(settings.store) as news:
            executor = Executor(
                store,
                force.engine,
                force.resources,
                settings.policy,
                heartbeat,
                most_runs=most_runs,
                news=news.came,
            )
            journal = Book(store, own.id)
            executor.begin(journal)
            try:
                executor.serve(until_idle=until_idle)
            finally:
                journal.flush()
                store.finish_run(own.id, RunStatus.FINISHED)


def kind_entries() -> list[str]:
    """The kinds that are registered as such; tuners of strangers are loaded when a job asks for them."""
    from importlib.metadata import entry_points

    return [point.name for point in entry_points(group=KINDS)]
