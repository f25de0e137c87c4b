"""What the store has acknowledged survives SIGKILL at any moment."""

import sqlite3
from pathlib import Path

from tuneloom.testing.killed_writers import kill_writers


def test_nothing_is_lost_or_doubled_when_writers_are_killed(tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    report = kill_writers(path, kills=40, seed=1)
    assert (report.lost, report.doubled, report.skipped) == (0, 0, 0)
    assert report.acknowledged > 40
    assert report.unacknowledged <= report.kills
    with sqlite3.connect(path) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
    connection.close()
