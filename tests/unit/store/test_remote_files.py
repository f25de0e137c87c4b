"""Files in an object store: the same promises as in a folder."""

from collections.abc import Iterator
from pathlib import Path

import fsspec
import pytest

from support.contracts.leases import BlobContract
from support.contracts.opened_store import OpenAgain
from tuneloom.errors import StoreError
from tuneloom.store import open_store


class TestObjectStore(BlobContract):
    @pytest.fixture
    def open_again(self, tmp_path: Path) -> Iterator[OpenAgain]:
        place, address = tmp_path / "store.db", f"memory://{tmp_path.name}"
        yield lambda: open_store(place, files=address)
        fsspec.filesystem("memory").store.clear()


def test_nothing_lies_beside_the_database(tmp_path: Path) -> None:
    store = open_store(tmp_path / "store.db", files="memory://models")
    digest = store.put_blob([b"a", b"b"], "me")
    assert not (tmp_path / "store.db.files").exists()
    assert fsspec.filesystem("memory").cat(f"/models/{digest[:2]}/{digest}") == b"ab"
    assert store.drop_blobs("me") == 1 and not store.has_blob(digest)
    store.close()


def test_an_address_that_nobody_serves_is_refused_with_its_name(tmp_path: Path) -> None:
    store = open_store(tmp_path / "store.db", files="nonesuch://bucket")
    with pytest.raises(StoreError, match="nonesuch"):
        store.put_blob([b"a"], "me")
    store.close()


def test_the_environment_says_where_files_lie(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TUNELOOM_FILES", "memory://elsewhere")
    store = open_store(tmp_path / "store.db")
    digest = store.put_blob([b"c"], "me")
    assert fsspec.filesystem("memory").exists(f"/elsewhere/{digest[:2]}/{digest}")
    store.drop_blobs("me")
    store.close()
