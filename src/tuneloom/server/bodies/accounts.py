"""What answers about tenants, tokens, sessions and the server itself look like."""

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from tuneloom.store import AuditEntry


class TenantTold(BaseModel):
    """A tenant, its limits and its usage."""

    name: str
    created: float
    weight: float
    jobs_at_once: int
    trials_a_day: int
    bytes_stored: int
    most_priority: int
    shares_records: bool
    used_jobs: int
    used_trials: int
    used_bytes: int


class TenantsTold(BaseModel):
    """All tenants."""

    tenants: list[TenantTold]


class TokenTold(BaseModel):
    """A token without its secret."""

    id: str
    tenant: str
    name: str
    role: Literal["reader", "submitter", "administrator"]
    created: float
    expires: float | None
    revoked: float | None


class TokenMade(TokenTold):
    """A new token; `token` is shown only once."""

    token: str


class TokensTold(BaseModel):
    """Tokens."""

    tokens: list[TokenTold]


class AuditPage(BaseModel):
    """A page of entries, newest first; pass `next` as `before` to get the following page."""

    model_config = ConfigDict(json_schema_serialization_defaults_required=True)
    entries: list[AuditEntry]
    next: int | None


class SessionTold(BaseModel):
    """A session of the page; its secret is in a cookie that scripts can't read."""

    tenant: str
    token: str
    name: str
    role: Literal["reader", "submitter", "administrator"]
    expires: float
    proof: str = Field(description="the header X-CSRF-Token of every write in this session")


class LoginState(BaseModel):
    """The server's version, and who is logged in, if anyone."""

    version: str
    session: SessionTold | None


class AcceptedTold(BaseModel):
    """What may be uploaded and submitted here."""

    formats: list[str]
    tuners: list[str]
    most_model_bytes: int


class SelfTold(BaseModel):
    """The tenant and the rights of this token, the tenant's quotas, and facts about the server."""

    tenant: str
    token: str
    role: Literal["reader", "submitter", "administrator"]
    version: str
    quota: TenantTold
    accepts: AcceptedTold


class HealthTold(BaseModel):
    """Whether the server works."""

    status: Literal["ok"]
