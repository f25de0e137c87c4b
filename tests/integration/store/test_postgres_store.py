"""The store on a real PostgreSQL keeps the same contract."""

import warnings
from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy import create_engine, make_url, text

from tuneloom.errors import StoreError
from tuneloom.store import open_store
from tuneloom.testing.store_contract import OpenAgain, StoreContract


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a PostgreSQL server of our own."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import pgserver

        place: Path = tmp_path_factory.mktemp("postgres")
        instance = pgserver.get_server(place)
    yield instance.get_uri()
    instance.cleanup()


@pytest.fixture
def address(server: str) -> str:
    """The address of an empty database."""
    engine = create_engine(make_url(server).set(drivername="postgresql+psycopg"))
    with engine.begin() as connection:
        connection.execute(text("DROP SCHEMA public CASCADE"))
        connection.execute(text("CREATE SCHEMA public"))
    engine.dispose()
    return server


class TestPostgresStore(StoreContract):
    @pytest.fixture
    def open_again(self, address: str) -> OpenAgain:
        return lambda: open_store(address)


def test_a_database_that_does_not_exist_is_named(server: str) -> None:
    missing = make_url(server).set(database="nonesuch").render_as_string(hide_password=False)
    with pytest.raises(StoreError, match="nonesuch"):
        open_store(missing)


def test_a_password_never_shows(server: str) -> None:
    url = make_url(server).set(database="nonesuch", password="s3cret")
    with pytest.raises(StoreError) as caught:
        open_store(url.render_as_string(hide_password=False))
    assert "s3cret" not in str(caught.value)
