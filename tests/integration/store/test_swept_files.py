"""A file in an object store that gets an owner is there afterwards, whatever is swept meanwhile."""

import threading
from collections.abc import Collection, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing

import fsspec
import psycopg
import pytest
from sqlalchemy import Connection

from tuneloom.errors import StoreError
from tuneloom.store import Store, open_store
from tuneloom.store.files.remote import RemoteFiles

WAITING = "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted"


@pytest.fixture
def files() -> Iterator[str]:
    yield "memory://swept"
    fsspec.filesystem("memory").store.clear()


class Sweep:
    """Removes a file in a thread of its own, and pauses when it has seen that nobody owns it."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.looked, self.go_on = threading.Event(), threading.Event()
        remove = RemoteFiles.remove

        def paused(place: RemoteFiles, digests: Collection[str], connection: Connection) -> None:
            self.looked.set()
            assert self.go_on.wait(300)
            remove(place, digests, connection)

        monkeypatch.setattr(RemoteFiles, "remove", paused)


def until_done_or_waiting(postgres: str, using: threading.Thread) -> None:
    """Return when whoever uses the file has done so, or waits for the sweep."""
    with psycopg.connect(postgres, autocommit=True) as connection:
        while using.is_alive() and connection.execute(WAITING).fetchone() == (0,):
            pass


@pytest.mark.parametrize("how", ["put again", "used"])
def test_a_file_is_not_swept_from_under_its_new_owner(
    how: str, postgres: str, files: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    sweep = Sweep(monkeypatch)
    with (
        closing(open_store(postgres, files=files)) as sweeper,
        closing(open_store(postgres, files=files)) as other,
        ThreadPoolExecutor(1) as pool,
    ):
        digest = other.put_blob([b"weights"], "old")
        removed = pool.submit(sweeper.drop_blobs, "old")
        assert sweep.looked.wait(300)
        outcome: list[str] = []
        using = threading.Thread(target=use, args=(other, digest, how, outcome))
        using.start()
        until_done_or_waiting(postgres, using)
        sweep.go_on.set()
        assert removed.result(300) == 1
        using.join(300)
        assert (outcome[0] == "owned") is other.has_blob(digest)
        assert outcome[0] == ("owned" if how == "put again" else "refused")


def use(store: Store, digest: str, how: str, outcome: list[str]) -> None:
    try:
        if how == "used":
            store.use_blob(digest, "new")
        else:
            store.put_blob([b"weights"], "new")
        outcome.append("owned")
    except StoreError:
        outcome.append("refused")
