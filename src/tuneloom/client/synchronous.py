"""A client for programs that wait."""

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx

from tuneloom.client.exchange import (
    API,
    ENDED,
    TIMEOUT,
    EventReader,
    JobEvent,
    headers,
    is_file,
    readable,
    require_good,
    require_version,
    unreachable,
    wanted_of,
)
from tuneloom.client.logins import server_url, token_for
from tuneloom.client.unpacking import BundleFile
from tuneloom.errors import ServiceError

_AGAIN_S = 2.0
_MOST_TRIES = 30


class Client:
    """A server, seen from here; closed by `close`, or as a context manager.

    ```python
    job = Client("http://farm:8321").submit("net.onnx", device="cpu", goal_ms=3)
    job.wait()
    job.fetch("out/")
    ```

    Methods raise InputError for what the server refuses, ServiceError if it can't be reached, does
    not accept the token, or breaks.
    """

    def __init__(
        self,
        url: str | None = None,
        token: str | None = None,
        *,
        transport: httpx.BaseTransport | None = None,
    ) -> None:
        """Without arguments, address and token come from the environment or from `tuneloom login`."""
        self.url = server_url(url)
        self._http = httpx.Client(
            base_url=self.url + API,
            headers=headers(token_for(self.url, token)),
            timeout=TIMEOUT,
            transport=transport,
        )

    def __enter__(self) -> "Client":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Let go of the connections."""
        self._http.close()

    def check(self) -> dict[str, Any]:
        """Whose token this is; raises ServiceError if server and client don't fit."""
        told = self.ask("GET", "/self")
        require_version(told, self.url)
        return told

    def upload(self, path: str | Path) -> str:
        """Upload a model's file; returns its digest."""
        file = readable(path)
        with file.open("rb") as content:
            told = self.ask("POST", "/models", params={"name": file.name}, content=content)
        return str(told["digest"])

    def submit(self, model: str | Path, *, key: str | None = None, **wanted: Any) -> "RemoteJob":
        """Submit a job; a file is uploaded first, a name or a digest is taken as it is.

        `wanted` is what jobs files have: `trials`, `seconds`, `goal_ms`, `device`, `target`, … With a
        `key` it can be submitted again without becoming two jobs.
        """
        digest = self.upload(model) if is_file(model) else str(model)
        if is_file(model):
            wanted.setdefault("name", Path(model).stem)
        extra = {"Idempotency-Key": key} if key is not None else {}
        told = self.ask("POST", "/jobs", json={"model": digest, **wanted_of(wanted)}, headers=extra)
        return RemoteJob(self, told)

    def job(self, job: str) -> "RemoteJob":
        """The job with this id."""
        return RemoteJob(self, self.ask("GET", f"/jobs/{job}"))

    def jobs(self, *, limit: int | None = None, **filters: Any) -> Iterator["RemoteJob"]:
        """Jobs, newest first; `filters` are those of the API: `status`, `name`, `model`, `tenant`."""
        before, left = None, limit
        while left is None or left > 0:
            size = 100 if left is None else min(100, left)
            asked = wanted_of({**filters, "before": before, "limit": size})
            page = self.ask("GET", "/jobs", params=asked)
            yield from (RemoteJob(self, told) for told in page["jobs"])
            left = None if left is None else left - len(page["jobs"])
            before = page["next"]
            if before is None:
                return

    def devices(self) -> list[dict[str, Any]]:
        """Hosts and devices of executors that carry something out."""
        found: list[dict[str, Any]] = self.ask("GET", "/devices")["devices"]
        return found

    def ask(self, method: str, path: str, **options: Any) -> dict[str, Any]:
        """The answer to one request of the API."""
        try:
            response = self._http.request(method, path, **options)
        except httpx.HTTPError as error:
            raise unreachable(self.url, error) from error
        require_good(response)
        found: dict[str, Any] = response.json() if response.content else {}
        return found

    def stream(self, path: str, last: str = "") -> Iterator[JobEvent]:
        """The events of one connection."""
        reader = EventReader()
        extra = {"Last-Event-ID": last} if last else {}
        with self._http.stream("GET", path, headers=extra) as response:
            if response.status_code >= 400:
                response.read()
                require_good(response)
            for line in response.iter_lines():
                event = reader.read(line)
                if event is not None:
                    yield event

    def download(self, path: str, bundle: BundleFile) -> Path:
        """A bundle into its folder."""
        try:
            with self._http.stream("GET", path) as response:
                if response.status_code >= 400:
                    response.read()
                    require_good(response)
                for piece in response.iter_bytes():
                    bundle.write(piece)
                return bundle.unpack(response.headers.get("X-Content-SHA256", ""))
        except httpx.HTTPError as error:
            raise unreachable(self.url, error) from error


class RemoteJob:
    """A job of a server; `details` is what the server told last."""

    def __init__(self, client: Client, details: dict[str, Any]) -> None:
        self._client = client
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

    def refresh(self) -> "RemoteJob":
        """Ask again."""
        self.details = self._client.ask("GET", f"/jobs/{self.id}")
        return self

    def events(self) -> Iterator[JobEvent]:
        """What happens until it has ended; a connection that breaks off is made again where it was."""
        last, tries = "", 0
        while tries < _MOST_TRIES:
            try:
                for event in self._client.stream(f"/jobs/{self.id}/events", last):
                    last, tries = event.id, 0
                    yield event
                    if event.name == "end":
                        return
            except httpx.HTTPError:
                pass
            tries += 1
            time.sleep(_AGAIN_S)
        raise ServiceError(f"can't reach {self._client.url} any more; job {self.id} goes on without us")

    def wait(self) -> "RemoteJob":
        """Return when it has ended, however it did."""
        for _ in self.events():
            continue
        return self.refresh()

    def fetch(self, folder: str | Path) -> Path:
        """Download its bundle into a new or empty folder."""
        with BundleFile(Path(folder)) as bundle:
            return self._client.download(f"/jobs/{self.id}/bundle", bundle)

    def cancel(self) -> "RemoteJob":
        """End it; what it measured is kept."""
        return self._told("POST", f"/jobs/{self.id}/cancel")

    def pause(self) -> "RemoteJob":
        """Start no new stage of it."""
        return self._told("POST", f"/jobs/{self.id}/pause")

    def resume(self) -> "RemoteJob":
        """Let it go on."""
        return self._told("POST", f"/jobs/{self.id}/resume")

    def prioritise(self, priority: int) -> "RemoteJob":
        """Give it another priority."""
        return self._told("PATCH", f"/jobs/{self.id}", json={"priority": priority})

    def _told(self, method: str, path: str, **options: Any) -> "RemoteJob":
        self.details = self._client.ask(method, path, **options)
        return self
