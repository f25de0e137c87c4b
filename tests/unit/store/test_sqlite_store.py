"""The store on SQLite keeps the contract."""

from pathlib import Path

import pytest

from support.contracts.store import OpenAgain, StoreContract
from tuneloom.store import open_store


class TestSqliteStore(StoreContract):
    @pytest.fixture
    def open_again(self, tmp_path: Path) -> OpenAgain:
        return lambda: open_store(tmp_path / "deep" / "store.db")
