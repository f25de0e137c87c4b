"""Stores of every earlier format open on either database, also for several programs at once."""

from concurrent.futures import ThreadPoolExecutor
from contextlib import closing

import pytest
from sqlalchemy import create_engine, text

from tuneloom.store import RunStatus, open_store
from tuneloom.store.database.addresses import url_of
from tuneloom.store.database.migrations import LATEST, VERSION_TABLE, upgrade

ROWS = (
    "INSERT INTO runs VALUES (1, 'old-loom-10', 5.0, 9.0, 'tune', '{}', 'finished', '', 'h', 'b', 7, '1')",
    "INSERT INTO notes VALUES (1, 'old-loom-10', 'seed', '42')",
    "INSERT INTO jobs VALUES ('old-loom-10.1', 'old-loom-10', 1, 'net', '{}', 'finished', 5.5, 8.5, '{}')",
)


def store_of_format(place: str, version: int) -> None:
    """A store as a program of that version left it, with rows of the first format."""
    engine = create_engine(url_of(place))
    with engine.begin() as connection:
        upgrade(connection, place, to=1)
        for row in ROWS:
            connection.execute(text(row))
    with engine.begin() as connection:
        upgrade(connection, place, to=version)
    engine.dispose()


def opened(place: str) -> tuple[str, RunStatus, object]:
    """What a program that opens the store finds."""
    with closing(open_store(place)) as store:
        (run,) = store.runs()
        return run.id, run.status, store.notes(run.id)["seed"]


@pytest.mark.parametrize("version", range(1, LATEST + 1))
def test_a_store_of_any_format_is_brought_up_to_date_once(place: str, version: int) -> None:
    store_of_format(place, version)
    with ThreadPoolExecutor(4) as programs:
        found = list(programs.map(opened, [place] * 4))
    assert found == [("old-loom-10", RunStatus.FINISHED, 42)] * 4
    engine = create_engine(url_of(place))
    with engine.connect() as connection:
        steps = connection.execute(text(f"SELECT version FROM {VERSION_TABLE} ORDER BY version")).scalars()
        assert list(steps) == list(range(1, LATEST + 1))
    engine.dispose()
