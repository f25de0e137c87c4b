"""A server in this process, on a store of its own, with two tenants."""

import warnings
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from tuneloom.server.access.credentials import make_token
from tuneloom.server.building import build_app
from tuneloom.server.settings import ServerSettings
from tuneloom.store import Role, Store, TenantLimits, open_store

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # its preference for another HTTP client is not ours
    from fastapi.testclient import TestClient

SMALL = TenantLimits(jobs_at_once=5, trials_a_day=10_000, bytes_stored=100_000, most_priority=5)


@dataclass
class Served:
    """A server with a client and the store behind it."""

    client: TestClient
    store: Store
    settings: ServerSettings
    tokens: dict[str, str] = field(default_factory=dict)

    def headers(self, who: str = "weavers") -> dict[str, str]:
        """What a request of somebody carries."""
        return {"Authorization": f"Bearer {self.tokens[who]}"}


@pytest.fixture
def settings(tmp_path: Path) -> ServerSettings:
    """Tests of limits replace this."""
    place = str(tmp_path / "store.db")
    return ServerSettings(
        store=place, tuners=("tvm", "mock"), most_model_bytes=50_000, most_body_bytes=20_000, rate=1e6
    )


@pytest.fixture
def served(settings: ServerSettings) -> Iterator[Served]:
    """Weavers and spinners are tenants; each has a submitter, weavers have a reader, too."""
    store = open_store(settings.store)
    with TestClient(build_app(settings), raise_server_exceptions=False) as client:
        found = Served(client=client, store=store, settings=settings)
        for tenant in ("weavers", "spinners"):
            store.add_tenant(tenant, SMALL)
            found.tokens[tenant] = make_token(store, tenant, "test", Role.SUBMITTER)[1]
        found.tokens["reader"] = make_token(store, "weavers", "test", Role.READER)[1]
        found.tokens["root"] = make_token(store, "weavers", "test", Role.ADMINISTRATOR)[1]
        yield found
    store.close()
