"""The store on SQLite keeps the contract."""

from pathlib import Path

import pytest

from tuneloom.store import open_store
from tuneloom.testing.contracts.store import OpenAgain, StoreContract


class TestSqliteStore(StoreContract):
    @pytest.fixture
    def open_again(self, tmp_path: Path) -> OpenAgain:
        return lambda: open_store(tmp_path / "deep" / "store.db")
