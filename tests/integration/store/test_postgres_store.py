"""The store on a real PostgreSQL keeps the same contract."""

from contextlib import closing

import pytest
from sqlalchemy import create_engine, make_url, text

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


def test_a_database_without_an_encoding_is_a_store_as_well(postgres: str) -> None:
    """As `initdb` makes it under the locale C, which containers have."""
    url = make_url(postgres).set(drivername="postgresql+psycopg")
    engine = create_engine(url, isolation_level="AUTOCOMMIT")
    with engine.connect() as connection:
        connection.execute(
            text("CREATE DATABASE ascii ENCODING 'SQL_ASCII' LC_COLLATE 'C' LC_CTYPE 'C' TEMPLATE template0")
        )
        try:
            address = url.set(drivername="postgresql", database="ascii").render_as_string(hide_password=False)
            with closing(open_store(address)) as store:
                run = store.create_run("tune Käse")
                assert store.run(run.id).command == "tune Käse"
        finally:
            connection.execute(text("DROP DATABASE ascii WITH (FORCE)"))
    engine.dispose()
