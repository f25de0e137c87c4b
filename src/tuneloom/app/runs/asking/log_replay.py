"""A run's scheduling decisions made once more from its log."""

from tuneloom.app.runs.executing.bookkeeping import LOGGED_WITH
from tuneloom.errors import InputError
from tuneloom.scheduling.journal import read
from tuneloom.scheduling.replaying import Replay, replay
from tuneloom.store import open_existing


def replay_log(name: str, place: str | None = None) -> tuple[str, Replay]:
    """The run's id, and how its logged decisions compare with those that its events lead to now.

    A run that a long-living executor carried out among others is in the log of that executor: then this
    log, with all runs in it, is replayed, and the id is the executor's own.

    Raises InputError for a run without a log, SchedulingError for a log that can't be read.
    """
    with open_existing(place) as store:
        run = store.run(name).id
        events = store.events(run)
        if not events:
            run = str(store.notes(run).get(LOGGED_WITH, run))
            events = store.events(run)
    if not events:
        raise InputError(f"run {run} has no log: nothing was scheduled in it")
    return run, replay(map(read, events))
