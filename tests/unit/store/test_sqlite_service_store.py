"""The store on SQLite keeps what a service needs."""

from pathlib import Path

import pytest

from support.contracts.opened_store import OpenAgain
from support.contracts.service import (
    AuditContract,
    ModelContract,
    SessionContract,
    SubmissionContract,
    TenantContract,
    WatchContract,
)
from support.contracts.sharing import PrivacyContract, TurnContract, WaitingContract
from tuneloom.store import open_store


class OnSqlite:
    """A store in a file."""

    @pytest.fixture
    def open_again(self, tmp_path: Path) -> OpenAgain:
        return lambda: open_store(tmp_path / "store.db")


class TestTenants(OnSqlite, TenantContract): ...


class TestModels(OnSqlite, ModelContract): ...


class TestSubmissions(OnSqlite, SubmissionContract): ...


class TestAudit(OnSqlite, AuditContract): ...


class TestSessions(OnSqlite, SessionContract): ...


class TestWatching(OnSqlite, WatchContract): ...


class TestTurns(OnSqlite, TurnContract): ...


class TestWaiting(OnSqlite, WaitingContract): ...


class TestPrivacy(OnSqlite, PrivacyContract): ...
