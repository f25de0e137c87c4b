"""When the store can't do its work, the error names the file and the remedy."""

import os
import sqlite3
import tempfile
from pathlib import Path

import pytest

from support.contracts.store import CONV, HERE, job_with_tasks, measured
from tuneloom.errors import StoreError
from tuneloom.store import default_place, open_store


def test_a_file_that_is_no_database_is_named(tmp_path: Path) -> None:
    path = tmp_path / "notes.txt"
    path.write_text("dear diary, " * 100)
    with pytest.raises(StoreError, match=r"notes\.txt: it is not a SQLite database: move it away"):
        open_store(path)


def test_a_damaged_store_is_named(tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    open_store(path).close()
    data = bytearray(path.read_bytes())
    data[4096:] = b"\xff" * (len(data) - 4096)
    path.write_bytes(data)
    with pytest.raises(StoreError, match=r"store\.db: it is damaged: restore a copy"):
        open_store(path).runs()


def test_a_folder_is_not_taken_for_a_file(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="it is a folder, name a file in it"):
        open_store(tmp_path)


def test_a_place_below_a_file_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(StoreError, match=r"file/store\.db: .*set TUNELOOM_HOME"):
        open_store(tmp_path / "file" / "store.db")


def test_a_folder_that_is_read_only_is_named() -> None:
    with tempfile.TemporaryDirectory() as parent:
        Path(parent).chmod(0o555)
        child = os.fork()
        if child == 0:
            os._exit(_open_without_privileges(Path(parent) / "store.db"))
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        Path(parent).chmod(0o755)


def _open_without_privileges(path: Path) -> int:
    if os.geteuid() == 0:
        os.setuid(65534)
    try:
        open_store(path)
    except StoreError as error:
        return 0 if f"{path}: it can't be opened" in str(error) else 3
    return 4


def test_a_store_that_may_only_be_read_can_be_read(tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    store = open_store(path)
    run = store.create_run("tune")
    store.close()
    reader = open_store(f"sqlite:///file:{path}?mode=ro&uri=true")
    assert reader.run(run.id).id == run.id
    with pytest.raises(StoreError, match="it can't be written: correct its permissions"):
        reader.create_run("tune")
    reader.close()


def test_a_locked_store_is_given_up_after_some_patience(tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    store = open_store(path, patience_s=0.05)
    greedy = sqlite3.connect(path, isolation_level=None)
    greedy.execute("BEGIN IMMEDIATE")
    with pytest.raises(StoreError, match="another process keeps it locked"):
        store.create_run("tune")
    assert store.runs() == []
    greedy.execute("ROLLBACK")
    greedy.close()
    assert store.create_run("tune").command == "tune"
    store.close()


def test_a_store_is_not_used_by_a_fork(tmp_path: Path) -> None:
    store = open_store(tmp_path / "store.db")
    child = os.fork()
    if child == 0:
        try:
            store.runs()
        except StoreError as error:
            os._exit(0 if "open it again after a fork" in str(error) else 1)
        finally:
            os._exit(2)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    store.close()


@pytest.mark.parametrize(
    ("place", "complaint"),
    [("mysql://host/name", "no store on 'mysql'"), ("://host/name", "not the address of a database")],
)
def test_an_unknown_address_is_refused(place: str, complaint: str) -> None:
    with pytest.raises(StoreError, match=complaint):
        open_store(place)


def test_an_unreachable_server_is_named() -> None:
    with pytest.raises(StoreError, match=r"store postgresql://ann@127\.0\.0\.1:1/x"):
        open_store("postgresql://ann@127.0.0.1:1/x")


def test_the_default_place_follows_the_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TUNELOOM_HOME", str(tmp_path))
    assert default_place() == tmp_path / "store.db"
    store = open_store()
    assert store.place == str(tmp_path / "store.db")
    store.close()
    monkeypatch.delenv("TUNELOOM_HOME")
    assert default_place() == Path.home() / ".tuneloom" / "store.db"


def test_a_full_disk_costs_the_new_trial_and_nothing_else(tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    store = open_store(path)
    job = job_with_tasks(store)
    store.add_trial(job, CONV.key, measured("kept", 1.0), HERE)
    store.close()
    child = os.fork()
    if child == 0:
        os._exit(_write_beyond_a_limit(path, job))
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    store = open_store(path)
    assert store.trials(job)[0].trial.candidate.key == "kept"
    store.close()
    connection = sqlite3.connect(path)
    assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
    connection.close()


def _write_beyond_a_limit(path: Path, job: str) -> int:
    import resource

    store = open_store(path)
    size = path.stat().st_size + 50_000
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))
    text = "".join(chr(33 + i * i % 90) for i in range(20_000))
    try:
        for number in range(1000):
            store.add_trial(job, CONV.key, measured(f"n{number}", 1.0, configuration=text), HERE)
    except StoreError as error:
        return 0 if "disk is full" in str(error) else 3
    return 4


def test_a_writer_takes_the_lock_as_soon_as_another_gives_it_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = open_store(tmp_path / "store.db")
    other = sqlite3.connect(tmp_path / "store.db", isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    pauses: list[float] = []

    def pause(seconds: float) -> None:
        pauses.append(seconds)
        if len(pauses) == 3:
            other.execute("ROLLBACK")

    monkeypatch.setattr("tuneloom.store.database.connections.time.sleep", pause)
    store.create_run("tune")
    assert len(pauses) == 3 and max(pauses) < 0.01
    store.close()
    other.close()
