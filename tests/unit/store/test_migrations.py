"""Stores of every earlier format become what the program needs, and lose nothing."""

import sqlite3
from pathlib import Path

import pytest
from sqlalchemy import create_engine, inspect

from tuneloom.errors import StoreError
from tuneloom.model import Measurement
from tuneloom.store import JobStatus, RunStatus, open_store
from tuneloom.store.database.migrations import LATEST, STEPS, upgrade
from tuneloom.store.database.tables import METADATA

FIRST_FORMAT_ROWS = """
INSERT INTO runs VALUES (1, 'old-loom-10', 5.0, 9.0, 'tune', '{}', 'finished', '', 'h', 'b', 7, '1');
INSERT INTO notes VALUES (1, 'old-loom-10', 'seed', '42');
INSERT INTO jobs VALUES ('old-loom-10.1', 'old-loom-10', 1, 'net', '{}', 'finished', 5.5, 8.5, '{"ms":3}');
INSERT INTO workloads VALUES (1, 'k', '0.27', 'conv', 'conv2d', '1x3', 0.5, 'llvm', 'llvm', x'00616263');
INSERT INTO tasks VALUES (1, 'old-loom-10.1', 'k', '0.27', 'conv', 2, 0.5, '1x3', 'conv2d', '{}');
INSERT INTO provenances VALUES (1, 'llvm', 'llvm', 'cpu', 'r3', '0.27');
INSERT INTO trials VALUES
  (1, 'old-loom-10.1', 'k', 'c1', 'conv2d', 'llvm', 1, x'007b7d', 'search', 'ok', '',
   '[0.5,0.25]', 0.25, 1.0, 0.1, 6.0),
  (2, 'old-loom-10.1', 'k', 'c2', 'conv2d', 'llvm', 1, x'007b7d', 'search', 'build_error', 'no',
   '[]', NULL, 1.0, 0.0, 7.0);
"""


def store_of_format(path: Path, version: int) -> None:
    """A store as a program of that version left it, with rows of the first format."""
    engine = create_engine(f"sqlite:///{path}")
    with engine.begin() as connection:
        upgrade(connection, str(path), to=1)
    fill = sqlite3.connect(path)
    fill.executescript(FIRST_FORMAT_ROWS)
    fill.close()
    with engine.begin() as connection:
        upgrade(connection, str(path), to=version)
    engine.dispose()


@pytest.mark.parametrize("version", range(1, LATEST + 1))
def test_a_store_of_any_earlier_format_opens_with_all_it_had(tmp_path: Path, version: int) -> None:
    path = tmp_path / "store.db"
    store_of_format(path, version)
    store = open_store(path)
    assert [(run.id, run.status, run.trials) for run in store.runs()] == [
        ("old-loom-10", RunStatus.FINISHED, 2)
    ]
    assert store.notes("old-loom-10") == {"seed": 42}
    assert store.job("old-loom-10.1").status is JobStatus.FINISHED
    assert store.tasks("old-loom-10.1")[0].task.payload == b"abc"
    (best,) = store.workload_trials("k", "llvm", 5)
    assert best.trial.outcome == Measurement(seconds=(0.5, 0.25), profile_s=0.1)
    assert best.features == {}
    assert store.spans("old-loom-10") == []
    store.close()


def test_the_migrated_tables_are_those_that_queries_use(tmp_path: Path) -> None:
    open_store(tmp_path / "store.db").close()
    engine = create_engine(f"sqlite:///{tmp_path / 'store.db'}")
    found = inspect(engine)
    for table in METADATA.sorted_tables:
        there = {column["name"]: column["nullable"] for column in found.get_columns(table.name)}
        wanted = {column.name: column.nullable for column in table.columns}
        keys = {column.name for column in table.primary_key}
        assert set(there) == set(wanted), table.name
        assert all(there[name] == wanted[name] for name in set(wanted) - keys), table.name
    engine.dispose()


def test_upgrading_twice_changes_nothing(tmp_path: Path) -> None:
    engine = create_engine(f"sqlite:///{tmp_path / 'store.db'}")
    for _ in range(2):
        with engine.begin() as connection:
            upgrade(connection, "here")
    with engine.connect() as connection:
        assert connection.exec_driver_sql("SELECT count(*) FROM tuneloom_version").scalar() == len(STEPS)
    engine.dispose()


def test_a_store_of_a_newer_program_is_refused_and_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    open_store(path).close()
    newer = sqlite3.connect(path)
    newer.execute("INSERT INTO tuneloom_version VALUES (?)", (LATEST + 1,))
    newer.commit()
    newer.close()
    with pytest.raises(StoreError, match=rf"format {LATEST + 1}.*up to {LATEST}: upgrade Tuneloom"):
        open_store(path)


def test_a_database_of_another_program_is_refused_and_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "recipes.db"
    other = sqlite3.connect(path)
    other.execute("CREATE TABLE recipes (name TEXT)")
    other.close()
    with pytest.raises(StoreError, match=r"another program \(tables recipes"):
        open_store(path)
    other = sqlite3.connect(path)
    assert other.execute("SELECT name FROM sqlite_master").fetchall() == [("recipes",)]
    other.close()
