"""The store on a real PostgreSQL keeps the same contract."""

import pytest
from sqlalchemy import make_url

from support.contracts.store import OpenAgain, StoreContract
from tuneloom.errors import StoreError
from tuneloom.store import open_store


class TestPostgresStore(StoreContract):
    @pytest.fixture
    def open_again(self, postgres: str) -> OpenAgain:
        return lambda: open_store(postgres)


def test_a_database_that_does_not_exist_is_named(postgres_server: str) -> None:
    missing = make_url(postgres_server).set(database="nonesuch").render_as_string(hide_password=False)
    with pytest.raises(StoreError, match="nonesuch"):
        open_store(missing)


def test_a_password_never_shows(postgres_server: str) -> None:
    url = make_url(postgres_server).set(database="nonesuch", password="s3cret")
    with pytest.raises(StoreError) as caught:
        open_store(url.render_as_string(hide_password=False))
    assert "s3cret" not in str(caught.value)
