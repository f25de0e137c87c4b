"""Tenants, tokens and the audit log, for administrators."""

import time
from dataclasses import asdict
from typing import Annotated

from fastapi import APIRouter, Path, Query

from tuneloom.server.access.callers import Administrator
from tuneloom.server.access.credentials import make_token
from tuneloom.server.bodies.accounts import (
    AuditPage,
    TenantsTold,
    TenantTold,
    TokenMade,
    TokensTold,
)
from tuneloom.server.bodies.asked import LimitsAsked, TenantAsked, TokenAsked
from tuneloom.server.parameters import Before, Limit, next_of
from tuneloom.server.problems import Problem, documented
from tuneloom.server.state import Served
from tuneloom.server.telling import tenant_told, token_told
from tuneloom.store import Role, TenantLimits

ROUTER = APIRouter(tags=["administration"])
_DAY_S = 86_400.0
TenantName = Annotated[str, Path(pattern=r"^[a-z0-9][a-z0-9-]{0,39}$")]


@ROUTER.get("/tenants", responses=documented())
def list_tenants(service: Served, caller: Administrator) -> TenantsTold:
    """All tenants and their usage."""
    with service.stores.lent() as store:
        return TenantsTold(
            tenants=[tenant_told(tenant, store.usage(tenant.id)) for tenant in store.tenants()]
        )


@ROUTER.post("/tenants", status_code=201, responses=documented(409, 413, 422))
def make_tenant(service: Served, caller: Administrator, asked: TenantAsked) -> TenantTold:
    """Create a tenant."""
    given = asked.model_dump(exclude_none=True)
    name = given.pop("name")
    with service.stores.lent() as store:
        tenant = store.add_tenant(name, TenantLimits(**given))
        store.add_audit(caller.entry("make tenant", name, **given))
        return tenant_told(tenant, store.usage(name))


@ROUTER.patch("/tenants/{tenant}", responses=documented(404, 413, 422))
def change_tenant(
    service: Served, caller: Administrator, tenant: TenantName, asked: LimitsAsked
) -> TenantTold:
    """Change a tenant's share and quotas."""
    given = asked.model_dump(exclude_none=True)
    with service.stores.lent() as store:
        old = store.tenant(tenant)
        changed = store.change_tenant(tenant, TenantLimits(**asdict(old.limits) | given)) if old else None
        if changed is None:
            raise Problem(404, f"no tenant {tenant!r}")
        store.add_audit(caller.entry("change tenant", tenant, **given))
        return tenant_told(changed, store.usage(tenant))


@ROUTER.get("/tokens", responses=documented(422))
def list_tokens(
    service: Served, caller: Administrator, tenant: Annotated[str | None, Query(max_length=40)] = None
) -> TokensTold:
    """Tokens without their secrets."""
    with service.stores.lent() as store:
        return TokensTold(tokens=[token_told(token) for token in store.tokens(tenant)])


@ROUTER.post("/tokens", status_code=201, responses=documented(413, 422))
def add_token(service: Served, caller: Administrator, asked: TokenAsked) -> TokenMade:
    """Create a token; its text is shown only in this response."""
    expires = time.time() + asked.days * _DAY_S if asked.days is not None else None
    with service.stores.lent() as store:
        record, text = make_token(store, asked.tenant, asked.name, Role(asked.role), expires)
        store.add_audit(caller.entry("make token", record.id, of=asked.tenant, role=asked.role))
    return TokenMade(**token_told(record).model_dump(), token=text)


@ROUTER.delete("/tokens/{token}", status_code=204, responses=documented(404, 422))
def revoke_token(
    service: Served, caller: Administrator, token: Annotated[str, Path(pattern=r"^[0-9a-f]{16}$")]
) -> None:
    """Revoke a token."""
    with service.stores.lent() as store:
        if not store.revoke_token(token):
            raise Problem(404, f"no token {token!r} that opens anything")
        store.add_audit(caller.entry("revoke token", token))


@ROUTER.get("/audit", responses=documented(422))
def show_audit(
    service: Served,
    caller: Administrator,
    tenant: Annotated[str | None, Query(max_length=40)] = None,
    before: Before = None,
    limit: Limit = 50,
) -> AuditPage:
    """Who did what, newest first."""
    with service.stores.lent() as store:
        found = store.audit(tenant, before=before, limit=limit)
    return AuditPage(entries=found, next=next_of(found, limit))
