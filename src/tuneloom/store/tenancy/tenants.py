"""Tenants, their tokens and the sessions of the page in the database."""

import secrets
from dataclasses import asdict
from typing import Any

from sqlalchemy import Connection, Row, delete, func, insert, select, update

from tuneloom.errors import ConflictError, InputError
from tuneloom.store.database.encoding import from_row, printable
from tuneloom.store.database.queries import Queries, given, insert_once
from tuneloom.store.database.tables import BUNDLES, JOBS, MODELS, SESSIONS, SUBMISSIONS, TENANTS, TOKENS
from tuneloom.store.records import JobStatus
from tuneloom.store.tenancy.records import (
    Role,
    SessionRecord,
    TenantLimits,
    TenantRecord,
    TenantUsage,
    TokenRecord,
    require_tenant_name,
)

DAY_S = 86_400.0
GOING_ON = tuple(status.value for status in JobStatus if not status.ended)


class TenantQueries(Queries):
    """Tenants and their tokens."""

    def add_tenant(self, name: str, limits: TenantLimits) -> TenantRecord:
        """Add a tenant; raises InputError for a name that can't be one, ConflictError if it is taken."""
        require_tenant_name(name)
        row = {"id": name, "created": self._clock(), **_limit_columns(limits)}
        with self._database.writing() as connection:
            if not insert_once(connection, TENANTS, row):
                raise ConflictError(f"there is a tenant {name!r} already; choose another name", field="name")
            return _tenant(_tenant_row(connection, name))

    def change_tenant(self, name: str, limits: TenantLimits) -> TenantRecord | None:
        """Give a tenant other limits; None if there is no such tenant."""
        with self._database.writing() as connection:
            change = update(TENANTS).where(TENANTS.c.id == name).values(**_limit_columns(limits))
            if not connection.execute(change).rowcount:
                return None
            return _tenant(_tenant_row(connection, name))

    def tenant(self, name: str) -> TenantRecord | None:
        """One tenant."""
        return self._found(select(TENANTS).where(TENANTS.c.id == name), _tenant)

    def tenants(self) -> list[TenantRecord]:
        """All tenants in alphabetical order."""
        return [_tenant(row) for row in self._all(select(TENANTS).order_by(TENANTS.c.id))]

    def usage(self, tenant: str) -> TenantUsage:
        """What a tenant uses of its quotas now."""
        with self._database.reading() as connection:
            return usage_of(connection, tenant, self._clock())

    def add_token(
        self, tenant: str, name: str, role: Role, digest: str, expires: float | None = None
    ) -> TokenRecord:
        """Add a token under a new id; `digest` stands for its secret."""
        row: dict[str, Any] = {"tenant": tenant, "name": printable(name), "role": role.value}
        row |= {"id": secrets.token_hex(8), "digest": digest, "created": self._clock(), "expires": expires}
        with self._database.writing() as connection:
            if connection.execute(select(TENANTS.c.id).where(TENANTS.c.id == tenant)).first() is None:
                raise InputError(f"no tenant {tenant!r}; make it first", field="tenant")
            connection.execute(insert(TOKENS).values(**row))
            return token_of(connection.execute(select(TOKENS).where(TOKENS.c.id == row["id"])).one())

    def token_with_digest(self, token: str) -> tuple[TokenRecord, str] | None:
        """A token and the digest of its secret."""
        query = select(TOKENS).where(TOKENS.c.id == token)
        return self._found(query, lambda row: (token_of(row), row.digest))

    def tokens(self, tenant: str | None = None) -> list[TokenRecord]:
        """The tokens of a tenant or of all, oldest first."""
        query = select(TOKENS).where(*given(TOKENS.c.tenant, tenant))
        query = query.order_by(TOKENS.c.created, TOKENS.c.id)
        return [token_of(row) for row in self._all(query)]

    def revoke_token(self, token: str) -> bool:
        """Let a token open nothing from now on; False if there is none that does."""
        change = update(TOKENS).where(TOKENS.c.id == token, TOKENS.c.revoked.is_(None))
        with self._database.writing() as connection:
            return bool(connection.execute(change.values(revoked=self._clock())).rowcount)


def locked_limits(connection: Connection, tenant: str) -> TenantLimits:
    """The limits of a tenant that nobody else checks against until we commit."""
    row = connection.execute(select(TENANTS).where(TENANTS.c.id == tenant).with_for_update()).first()
    if row is None:
        raise InputError(f"no tenant {tenant!r}; make it first", field="tenant")
    return _tenant(row).limits


def asked_of(connection: Connection, tenant: str, now: float) -> tuple[int, int]:
    """How many jobs of a tenant go on, and how many trials it asked for lately."""
    mine = SUBMISSIONS.c.tenant == tenant
    jobs = select(func.count()).select_from(SUBMISSIONS.join(JOBS, JOBS.c.run == SUBMISSIONS.c.run))
    lately = select(func.coalesce(func.sum(SUBMISSIONS.c.trials), 0)).where(
        mine, SUBMISSIONS.c.created > now - DAY_S
    )
    going_on = connection.execute(jobs.where(mine, JOBS.c.status.in_(GOING_ON))).scalar_one()
    return int(going_on), int(connection.execute(lately).scalar_one())


def usage_of(connection: Connection, tenant: str, now: float) -> TenantUsage:
    """What a tenant uses, inside the caller's transaction."""
    mine = SUBMISSIONS.c.tenant == tenant
    uploads = select(func.coalesce(func.sum(MODELS.c.size_bytes), 0)).where(MODELS.c.tenant == tenant)
    made = SUBMISSIONS.join(BUNDLES, BUNDLES.c.run == SUBMISSIONS.c.run)
    bundles = select(func.coalesce(func.sum(BUNDLES.c.size_bytes), 0)).select_from(made).where(mine)
    jobs, trials = asked_of(connection, tenant, now)
    return TenantUsage(
        jobs=jobs,
        trials=trials,
        size_bytes=sum(int(connection.execute(query).scalar_one()) for query in (uploads, bundles)),
    )


def _limit_columns(limits: TenantLimits) -> dict[str, Any]:
    return asdict(limits) | {"shares_records": int(limits.shares_records)}


def _tenant_row(connection: Connection, name: str) -> Row[Any]:
    return connection.execute(select(TENANTS).where(TENANTS.c.id == name)).one()


def _tenant(row: Row[Any]) -> TenantRecord:
    limits = from_row(TenantLimits, row, shares_records=bool(row.shares_records))
    return TenantRecord(id=row.id, created=row.created, limits=limits)


def token_of(row: Row[Any]) -> TokenRecord:
    """A token from its row."""
    return from_row(TokenRecord, row, role=Role(row.role))


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
        return self._found(_JOINED.where(SESSIONS.c.digest == digest), _session)

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
