"""Who calls: a token, its role, and whether it calls too often."""

from dataclasses import dataclass
from typing import Annotated

from fastapi import Depends, Request
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer

from tuneloom.server.access.credentials import bearer, found_session, require_meant, secret_of
from tuneloom.server.access.rates import RateLimits
from tuneloom.server.problems import Problem
from tuneloom.server.stores import StorePool
from tuneloom.store import AuditEntry, Role, Store, TokenRecord

SCHEME = HTTPBearer(
    auto_error=False, description="a token, as `tuneloom serve` prints it or as an administrator makes it"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Principal:
    """The bearer of a valid token, in one request."""

    tenant: str
    token: str
    role: Role
    request_id: str

    @property
    def sees(self) -> str | None:
        """The tenant whose things this caller sees; None for all."""
        return None if self.role is Role.ADMINISTRATOR else self.tenant

    def entry(self, action: str, subject: str, **detail: object) -> AuditEntry:
        """A line for the audit log."""
        return AuditEntry(
            tenant=self.tenant,
            token=self.token,
            action=action,
            subject=subject,
            request_id=self.request_id,
            detail=detail,
        )


@dataclass(frozen=True, slots=True)
class Access:
    """What is asked before any handler: the store for tokens and sessions, and how often one may ask."""

    stores: StorePool
    limits: RateLimits


Credentials = Annotated[HTTPAuthorizationCredentials | None, Depends(SCHEME)]


def reader(request: Request, credentials: Credentials) -> Principal:
    """Anybody with a token, or with a session of the page."""
    text = credentials.credentials if credentials is not None else ""
    secret = "" if text else secret_of(request)
    access: Access = request.app.state.access
    access.limits.knock(request)
    with access.stores.lent() as store:
        record = _in_session(store, request, secret) if secret else _with_token(store, text)
    access.limits.admit(request, record.id)
    request.state.token = record.id
    return principal(request, record)


def principal(request: Request, token: TokenRecord) -> Principal:
    """The bearer of a token that was found valid, in this request."""
    id = request.state.request_id
    return Principal(tenant=token.tenant, token=token.id, role=token.role, request_id=id)


# What does not wait is async: anything else is handed to a thread, and on a busy machine that takes its time.
async def submitter(caller: Annotated[Principal, Depends(reader)]) -> Principal:
    """Somebody who may submit and change jobs."""
    return _covering(caller, Role.SUBMITTER)


async def administrator(caller: Annotated[Principal, Depends(reader)]) -> Principal:
    """Somebody who may make tenants and tokens."""
    return _covering(caller, Role.ADMINISTRATOR)


Reader = Annotated[Principal, Depends(reader)]
Submitter = Annotated[Principal, Depends(submitter)]
Administrator = Annotated[Principal, Depends(administrator)]


def _with_token(store: Store, text: str) -> TokenRecord:
    record = bearer(store, text)
    if record is None:
        words = "this token opens nothing; ask an administrator for one" if text else "a token is needed"
        raise Problem(401, words, "Authorization", {"WWW-Authenticate": "Bearer"})
    return record


def _in_session(store: Store, request: Request, secret: str) -> TokenRecord:
    session = found_session(store, secret)
    if session is None:
        raise Problem(401, "this session has ended; log in again", "Cookie", {"WWW-Authenticate": "Bearer"})
    require_meant(request, secret)
    return session.token


def _covering(caller: Principal, needed: Role) -> Principal:
    if not caller.role.covers(needed):
        raise Problem(403, f"this token is a {caller.role.value}'s, a {needed.value}'s is needed")
    return caller
