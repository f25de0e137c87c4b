"""What a service keeps, as frozen values."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from tuneloom.errors import InputError
from tuneloom.model.fields import NATURAL, NumberKind
from tuneloom.store.records import JobStatus, Json

_NAME = re.compile(r"[a-z0-9][a-z0-9-]{0,39}\Z")
_WEIGHT = NumberKind(words="a number above 0 and at most 1000", least=0, most=1000, excludes_least=True)
_BYTES = NumberKind(words="a whole number of at least 0", least=0, most=2**50, whole=True)


class Role(StrEnum):
    """What the bearer of a token may do; each role may do what those before it may."""

    READER = "reader"
    SUBMITTER = "submitter"
    ADMINISTRATOR = "administrator"

    def covers(self, needed: "Role") -> bool:
        """Whether this role suffices where `needed` is asked for."""
        order = list(Role)
        return order.index(self) >= order.index(needed)


@dataclass(frozen=True, slots=True, kw_only=True)
class TenantLimits:
    """A tenant's share and quotas.

    Jobs may ask for priorities from `-most_priority` to `most_priority`. While several tenants have
    work, each gets device time in proportion to its `weight`. `shares_records` says whether what its
    jobs measured helps those of other tenants.
    """

    weight: float = 1.0
    jobs_at_once: int = 100
    trials_a_day: int = 1_000_000
    bytes_stored: int = 20 * 2**30
    most_priority: int = 10
    shares_records: bool = False

    def __post_init__(self) -> None:
        for name, kind in _LIMITS.items():
            value = getattr(self, name)
            if not kind.fits(value):
                raise InputError(f"{name!r} must be {kind.words_for(value)}, got {value!r}", field=name)


_LIMITS = {
    "weight": _WEIGHT,
    "jobs_at_once": NATURAL,
    "trials_a_day": NATURAL,
    "bytes_stored": _BYTES,
    "most_priority": NATURAL,
}


def require_tenant_name(name: str) -> None:
    """Raise InputError unless a tenant can be called so."""
    if not _NAME.match(name):
        raise InputError(
            f"a tenant's name has 1 to 40 small letters, digits and dashes, got {name[:60]!r}", field="name"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class TenantRecord:
    """One tenant: it sees its own models, jobs and bundles only."""

    id: str
    created: float
    limits: TenantLimits


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenRecord:
    """One token, without its secret, of which the store keeps a digest only."""

    id: str
    tenant: str
    name: str
    role: Role
    created: float
    expires: float | None = None
    revoked: float | None = None

    def is_valid(self, now: float) -> bool:
        """Whether it opens anything at this time."""
        return self.revoked is None and (self.expires is None or now < self.expires)


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionRecord:
    """Somebody who logged in with a token; it opens what the token opens, until it expires."""

    token: TokenRecord
    created: float
    expires: float

    def is_valid(self, now: float) -> bool:
        """Whether it opens anything at this time."""
        return now < self.expires and self.token.is_valid(now)


@dataclass(frozen=True, slots=True, kw_only=True)
class TenantUsage:
    """What a tenant uses of its quotas; trials are those its jobs of the last day may make."""

    jobs: int
    trials: int
    size_bytes: int


class ModelState(StrEnum):
    """Whether somebody has looked into an uploaded file."""

    CHECKING = "checking"
    READY = "ready"
    REFUSED = "refused"


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelRecord:
    """A model that a tenant uploaded. `summary` has its inputs, or the reason why it is refused."""

    number: int
    tenant: str
    digest: str
    name: str
    size_bytes: int
    created: float
    state: ModelState
    summary: Mapping[str, Json] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Submission:
    """What is written when a tenant submits a job.

    `model` is a digest or the name of a model that needs no file. `request` is a digest of all
    that was asked for: the same key with another request is a mistake of the client.
    """

    tenant: str
    token: str
    name: str
    model: str
    spec: Mapping[str, Json]
    trials: int
    request: str
    key: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SubmittedJob:
    """A job as its tenant sees it; `id` is the name of its run, `number` grows with every submission."""

    number: int
    id: str
    tenant: str
    model: str
    name: str
    status: JobStatus
    spec: Mapping[str, Json]
    result: Mapping[str, Json]
    created: float
    started: float | None = None
    ended: float | None = None
    trials: int = 0

    @property
    def job(self) -> str:
        """The id of the job in its run."""
        return f"{self.id}.1"


@dataclass(frozen=True, slots=True, kw_only=True)
class Share:
    """Whose run it is, and what that tenant's share of devices weighs."""

    tenant: str
    weight: float


@dataclass(frozen=True, slots=True, kw_only=True)
class BundleRecord:
    """The bundle of a job, kept as one file."""

    run: str
    digest: str
    size_bytes: int
    created: float


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditEntry:
    """Who did what to what, in which request. Secrets never get here."""

    number: int = 0
    at: float = 0.0
    tenant: str
    token: str
    action: str
    subject: str
    request_id: str
    detail: Mapping[str, Json] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceNotes:
    """What a job noted about devices.

    `began` is the epoch time of second 0 of its run, to which all other times refer. `resources` say
    when they were away; `canary` are pairs of a time and the canary's time against its quiet one.
    """

    began: float
    device_key: str
    resources: tuple[Mapping[str, Json], ...] = ()
    canary: tuple[tuple[float, float], ...] = ()
