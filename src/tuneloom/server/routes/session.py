"""Logging in to the page and out of it."""

from fastapi import APIRouter, Request, Response

from tuneloom import __version__
from tuneloom.server.access.callers import principal
from tuneloom.server.access.credentials import (
    bearer,
    begin_session,
    end_session,
    found_session,
    give_cookie,
    proof_of,
    require_meant,
    require_own_page,
    secret_of,
    take_cookie,
)
from tuneloom.server.bodies.accounts import LoginState, SessionTold
from tuneloom.server.bodies.asked import LoginAsked
from tuneloom.server.problems import Problem, documented
from tuneloom.server.state import Served
from tuneloom.store import SessionRecord

ROUTER = APIRouter(prefix="/session", tags=["session"])


@ROUTER.get("", responses={429: documented(429)[429]})
def show_session(service: Served, request: Request) -> LoginState:
    """Who is logged in with this browser, if anyone."""
    service.access.limits.knock(request)
    secret = secret_of(request)
    with service.stores.lent() as store:
        record = found_session(store, secret)
    if record is not None:
        service.access.limits.admit(request, record.token.id)
    return LoginState(version=__version__, session=_told(record, secret) if record is not None else None)


@ROUTER.post("", status_code=201, responses=documented(413, 422))
def log_in(service: Served, request: Request, response: Response, asked: LoginAsked) -> SessionTold:
    """Exchange a token for a session: a cookie that scripts can't read."""
    require_own_page(request)
    service.access.limits.knock(request)
    with service.stores.lent() as store:
        token = bearer(store, asked.token.strip())
        if token is None:
            raise Problem(401, "this token opens nothing; ask an administrator for one", "token")
        service.access.limits.admit(request, token.id)
        end_session(store, secret_of(request))
        record, secret = begin_session(store, token.id)
        store.add_audit(principal(request, token).entry("log in", token.id))
    request.state.token = token.id
    give_cookie(request, response, secret)
    return _told(record, secret)


@ROUTER.delete("", status_code=204, responses=documented())
def log_out(service: Served, request: Request, response: Response) -> None:
    """Log out: the session and its cookie become invalid."""
    service.access.limits.knock(request)
    secret = secret_of(request)
    with service.stores.lent() as store:
        record = found_session(store, secret)
        if record is not None:
            service.access.limits.admit(request, record.token.id)
            require_meant(request, secret)
            end_session(store, secret)
            store.add_audit(principal(request, record.token).entry("log out", record.token.id))
    take_cookie(request, response)


def _told(record: SessionRecord, secret: str) -> SessionTold:
    return SessionTold(
        tenant=record.token.tenant,
        token=record.token.id,
        name=record.token.name,
        role=record.token.role.value,
        expires=min(record.expires, record.token.expires or record.expires),
        proof=proof_of(secret),
    )
