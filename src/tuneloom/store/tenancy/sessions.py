"""Sessions of the page in the database."""

from typing import Any

from sqlalchemy import Connection, Row, delete, insert, select

from tuneloom.store.database.queries import Queries
from tuneloom.store.database.tables.tenancy import SESSIONS, TOKENS
from tuneloom.store.tenancy.records import SessionRecord
from tuneloom.store.tenancy.tenants import token_of

_JOINED = select(
    TOKENS, SESSIONS.c.created.label("began"), SESSIONS.c.expires.label("session_expires")
).select_from(SESSIONS.join(TOKENS, TOKENS.c.id == SESSIONS.c.token))


class SessionQueries(Queries):
    """Who logged in to the page; the store keeps digests of their secrets only."""

    def add_session(self, token: str, digest: str, expires: float, most: int) -> SessionRecord:
        """Note that somebody logged in with a token.

        Expired sessions go, and the oldest ones of the token beyond `most`.
        """
        now = self._clock()
        row = {"digest": digest, "token": token, "created": now, "expires": expires}
        with self._database.writing() as connection:
            connection.execute(delete(SESSIONS).where(SESSIONS.c.expires <= now))
            connection.execute(insert(SESSIONS).values(**row))
            _drop_oldest(connection, token, digest, most)
            return _session(connection.execute(_JOINED.where(SESSIONS.c.digest == digest)).one())

    def session(self, digest: str) -> SessionRecord | None:
        """The session with this digest."""
        with self._database.reading() as connection:
            row = connection.execute(_JOINED.where(SESSIONS.c.digest == digest)).first()
            return None if row is None else _session(row)

    def remove_session(self, digest: str) -> bool:
        """Log out; False if there is no such session."""
        with self._database.writing() as connection:
            return bool(connection.execute(delete(SESSIONS).where(SESSIONS.c.digest == digest)).rowcount)


def _drop_oldest(connection: Connection, token: str, new: str, most: int) -> None:
    others = (SESSIONS.c.token == token) & (SESSIONS.c.digest != new)
    newest = select(SESSIONS.c.digest).where(others).order_by(SESSIONS.c.created.desc()).limit(most - 1)
    kept = connection.execute(newest).scalars().all()
    connection.execute(delete(SESSIONS).where(others, SESSIONS.c.digest.not_in(kept)))


def _session(row: Row[Any]) -> SessionRecord:
    return SessionRecord(token=token_of(row), created=row.began, expires=row.session_expires)
