"""What the store has acknowledged survives SIGKILL at any moment."""

import sqlite3
from pathlib import Path

from support.killed_writers import AT_ONCE, KillReport, kill_writers


def check(report: KillReport) -> None:
    assert (report.lost, report.doubled, report.skipped) == (0, 0, 0)
    assert report.acknowledged > report.kills
    assert report.unacknowledged <= AT_ONCE * report.kills
    assert report.kept % AT_ONCE == 0, "some trials of a transaction without the others"


def test_nothing_is_lost_or_doubled_when_writers_are_killed(tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    check(kill_writers(path, kills=40, seed=1))
    connection = sqlite3.connect(path)
    assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
    connection.close()


def test_nothing_is_lost_or_doubled_on_a_server_either(postgres: str) -> None:
    check(kill_writers(postgres, kills=15, seed=2))
