"""The store on a real PostgreSQL keeps what a service needs."""

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


class OnPostgres:
    """A store in an empty database."""

    @pytest.fixture
    def open_again(self, postgres: str) -> OpenAgain:
        return lambda: open_store(postgres)


class TestTenants(OnPostgres, TenantContract): ...


class TestModels(OnPostgres, ModelContract): ...


class TestSubmissions(OnPostgres, SubmissionContract): ...


class TestAudit(OnPostgres, AuditContract): ...


class TestSessions(OnPostgres, SessionContract): ...


class TestWatching(OnPostgres, WatchContract): ...


class TestTurns(OnPostgres, TurnContract): ...


class TestWaiting(OnPostgres, WaitingContract): ...


class TestPrivacy(OnPostgres, PrivacyContract): ...
