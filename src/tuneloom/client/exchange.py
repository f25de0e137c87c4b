"""What is asked of a server and what its answers mean, for both kinds of clients."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
from httpx_sse import ServerSentEvent

from tuneloom import __version__
from tuneloom.client.logins import token_for
from tuneloom.errors import ConflictError, InputError, QuotaError, ServiceError

API = "/api/v1"
ENDED = ("finished", "cancelled", "failed")
TIMEOUT = httpx.Timeout(30.0, read=60.0)
_KINDS: dict[int, type[InputError]] = {409: ConflictError, 403: QuotaError}


def connection(url: str, token: str | None) -> dict[str, Any]:
    """What both kinds of connections are made with; without a token, the one that is kept for the server."""
    bearer = token_for(url, token)
    headers = {"Authorization": f"Bearer {bearer}", "User-Agent": f"tuneloom/{__version__}"}
    return {"base_url": url + API, "headers": headers, "timeout": TIMEOUT}


def unreachable(url: str, error: Exception) -> ServiceError:
    """The error for a server that is not there."""
    return ServiceError(
        f"can't reach {url}: {error or type(error).__name__}; is `tuneloom serve` running there?"
    )


def require_good(response: httpx.Response) -> None:
    """Raise the error that an answer tells, if it tells one; its body must have been read."""
    if response.status_code < 400:
        return
    url = f"{response.request.url.scheme}://{response.request.url.netloc.decode()}"
    told = _problem(response)
    if response.status_code == 401:
        raise ServiceError(f"{url} does not accept this token: {told.get('detail', '')}")
    if not told:
        raise ServiceError(
            f"{url} answered with {response.status_code} and is no server of this kind, or of another "
            f"version; this client is {__version__}"
        )
    kind = _KINDS.get(response.status_code, InputError)
    if response.status_code >= 500 or response.status_code == 429:
        raise ServiceError(f"{url}: {told['detail']}")
    raise kind(str(told["detail"]), field=told.get("field"))


@dataclass(slots=True)
class Patience:
    """How long a client still waits, in all, for a server that is asked too often."""

    left_s: float = 30.0

    def wait_s(self, response: httpx.Response) -> float:
        """After how long to ask the same again; 0 if the answer is to be taken as it is."""
        if response.status_code != 429:
            return 0.0
        told = response.headers.get("Retry-After", "")
        seconds = max(0.1, float(told)) if told.isdecimal() else 1.0
        self.left_s -= seconds
        return seconds if self.left_s >= 0 else 0.0


def require_version(told: Mapping[str, Any], url: str) -> None:
    """Raise ServiceError if client and server may not understand each other."""
    theirs = str(told.get("version", "unknown"))
    if theirs.split(".")[:2] != __version__.split(".")[:2]:
        raise ServiceError(f"{url} has version {theirs}, this client {__version__}: install the same")


def is_file(model: str | Path) -> bool:
    """Whether a model is a file to upload, and not a name or a digest that the server knows."""
    if isinstance(model, Path):
        return True
    return ":" not in model and not (len(model) == 64 and set(model) <= set("0123456789abcdef"))


def readable(file: str | Path, field: str = "model") -> Path:
    """The file that a field names; raises InputError if it can't be read."""
    path = Path(file)
    if not path.is_file():
        other = ", or use zoo:NAME" if field == "model" else ""
        raise InputError(f"{path}: no such file; check the path{other}", field=field)
    return path


def wanted_of(values: Mapping[str, Any]) -> dict[str, Any]:
    """The body of a submission: what was given."""
    return {name: value for name, value in values.items() if value is not None}


def _problem(response: httpx.Response) -> dict[str, Any]:
    if not response.headers.get("content-type", "").startswith("application/problem+json"):
        return {}
    try:
        found: dict[str, Any] = response.json()
    except ValueError:
        return {}
    return found if "detail" in found else {}


@dataclass(frozen=True, slots=True)
class JobEvent:
    """Something that happened to a job: `view`, `trials` or `end`."""

    name: str
    id: str
    data: dict[str, Any]

    @classmethod
    def of(cls, sent: ServerSentEvent) -> "JobEvent":
        """The event that a stream sent."""
        return cls(sent.event, sent.id, sent.json())
