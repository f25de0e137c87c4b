"""What is said to a server, once for clients that wait and for those with an event loop.

A conversation is a generator: it yields requests, is sent what the server told, and returns what came
of it. Whoever carries it out decides how to wait.
"""

from collections.abc import Generator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Generic, TypeVar

from tuneloom.app.requests.schema import uploads
from tuneloom.client.exchange import ENDED, JobEvent, is_file, readable, require_version, wanted_of
from tuneloom.errors import ServiceError

Told = dict[str, Any]
Result = TypeVar("Result")
After = TypeVar("After")
AGAIN_S = 2.0
"""How long to wait before a broken connection is made again."""
_MOST_TRIES = 30
_PAGE = 100


@dataclass(frozen=True, slots=True)
class ApiRequest:
    """One request; a `file` is its body."""

    method: str
    path: str
    options: Mapping[str, Any] = field(default_factory=dict)
    file: Path | None = None


Conversation = Generator[ApiRequest, Told, Result]


def checking(url: str) -> Conversation[Told]:
    """Whose token this is; raises ServiceError if server and client don't fit."""
    told = yield ApiRequest("GET", "/self")
    require_version(told, url)
    return told


def uploading(path: str | Path, field: str = "model") -> Conversation[str]:
    """The digest of a model's file, or of samples, once it is uploaded."""
    file = readable(path, field)
    told = yield ApiRequest("POST", "/models", {"params": {"name": file.name}}, file)
    return str(told["digest"])


def submitting(model: str | Path, key: str | None, wanted: Mapping[str, Any]) -> Conversation[Told]:
    """A submitted job; files are uploaded first, and the model's gives the job its name."""
    digest, named = str(model), {}
    if is_file(model):
        digest, named = (yield from uploading(model)), {"name": Path(model).stem}
    body = {"model": digest, **named, **wanted_of(wanted)}
    for name in uploads():
        if name in body and is_file(body[name]):
            body[name] = yield from uploading(body[name], name)
    headers = {"Idempotency-Key": key} if key is not None else {}
    return (yield ApiRequest("POST", "/jobs", {"json": body, "headers": headers}))


def listing_devices() -> Conversation[list[Told]]:
    """Hosts and devices of executors, idle ones included."""
    told = yield ApiRequest("GET", "/devices")
    found: list[Told] = told["devices"]
    return found


@dataclass(slots=True)
class JobPages:
    """Pages of jobs, newest first, until there are no more or `left` have been had."""

    filters: Mapping[str, Any]
    left: int | None = None
    before: int | None = None
    more: bool = True

    def next(self) -> Conversation[list[Told]]:
        """The next page."""
        size = _PAGE if self.left is None else min(_PAGE, self.left)
        params = wanted_of({**self.filters, "before": self.before, "limit": size})
        page = yield ApiRequest("GET", "/jobs", {"params": params})
        jobs: list[Told] = page["jobs"]
        self.before = page["next"]
        self.left = None if self.left is None else self.left - len(jobs)
        self.more = self.before is not None and self.left != 0
        return jobs


@dataclass(slots=True)
class Listening:
    """How far a listener has heard a job's events; a connection that breaks off is made again there."""

    job: str
    url: str
    last: str = ""
    ended: bool = False
    _tries: int = 0

    @property
    def path(self) -> str:
        return f"/jobs/{self.job}/events"

    def heard(self, event: JobEvent) -> None:
        """Note an event."""
        self.last, self._tries = event.id, 0
        self.ended = event.name == "end"

    def broke_off(self) -> None:
        """Note that a connection ended too early; raises ServiceError after too many in a row."""
        self._tries += 1
        if self._tries >= _MOST_TRIES:
            raise ServiceError(f"can't reach {self.url} any more; job {self.job} goes on without us")


class JobOfServer(Generic[After]):
    """A job of a server; `details` is what the server told last.

    What is asked of it is the same for all clients; only what comes `After` differs: the job, or a
    coroutine that returns it.
    """

    def __init__(self, details: Told) -> None:
        self.details = details

    @property
    def id(self) -> str:
        """The name of the job."""
        return str(self.details["id"])

    @property
    def status(self) -> str:
        """How it stood when the server told last."""
        return str(self.details["status"])

    @property
    def ended(self) -> bool:
        """Whether it had ended then."""
        return self.status in ENDED

    def refresh(self) -> After:
        """Ask again."""
        return self._after(self._asking("GET"))

    def cancel(self) -> After:
        """End it; what it measured is kept."""
        return self._after(self._asking("POST", "/cancel"))

    def pause(self) -> After:
        """Start no new stage of it."""
        return self._after(self._asking("POST", "/pause"))

    def resume(self) -> After:
        """Let it go on."""
        return self._after(self._asking("POST", "/resume"))

    def prioritise(self, priority: int) -> After:
        """Give it another priority."""
        return self._after(self._asking("PATCH", json={"priority": priority}))

    def _asking(self, method: str, what: str = "", **options: Any) -> Conversation[None]:
        self.details = yield ApiRequest(method, f"/jobs/{self.id}{what}", options)

    def _after(self, conversation: Conversation[None]) -> After:
        """Carry a conversation out; returns the job."""
        raise NotImplementedError
