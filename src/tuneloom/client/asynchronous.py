"""A client for programs with an event loop; the same as the one that waits, with `await`."""

import asyncio
from collections.abc import AsyncIterator
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
_PIECE = 1 << 20


class AsyncClient:
    """A server, seen from here; closed by `close`, or as a context manager.

    ```python
    job = await AsyncClient("http://farm:8321").submit("net.onnx", device="cpu", goal_ms=3)
    await job.wait()
    await job.fetch("out/")
    ```

    Methods raise InputError for what the server refuses, ServiceError if it can't be reached, does
    not accept the token, or breaks.
    """

    def __init__(
        self,
        url: str | None = None,
        token: str | None = None,
        *,
        transport: httpx.AsyncBaseTransport | None = None,
    ) -> None:
        """Without arguments, address and token come from the environment or from `tuneloom login`."""
        self.url = server_url(url)
        self._http = httpx.AsyncClient(
            base_url=self.url + API,
            headers=headers(token_for(self.url, token)),
            timeout=TIMEOUT,
            transport=transport,
        )

    async def __aenter__(self) -> "AsyncClient":
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Let go of the connections."""
        await self._http.aclose()

    async def check(self) -> dict[str, Any]:
        """Whose token this is; raises ServiceError if server and client don't fit."""
        told = await self.ask("GET", "/self")
        require_version(told, self.url)
        return told

    async def upload(self, path: str | Path) -> str:
        """Upload a model's file; returns its digest."""
        file = readable(path)
        told = await self.ask("POST", "/models", params={"name": file.name}, content=_pieces(file))
        return str(told["digest"])

    async def submit(self, model: str | Path, *, key: str | None = None, **wanted: Any) -> "AsyncRemoteJob":
        """Submit a job; a file is uploaded first, a name or a digest is taken as it is.

        `wanted` is what jobs files have: `trials`, `seconds`, `goal_ms`, `device`, `target`, … With a
        `key` it can be submitted again without becoming two jobs.
        """
        digest = await self.upload(model) if is_file(model) else str(model)
        if is_file(model):
            wanted.setdefault("name", Path(model).stem)
        extra = {"Idempotency-Key": key} if key is not None else {}
        told = await self.ask("POST", "/jobs", json={"model": digest, **wanted_of(wanted)}, headers=extra)
        return AsyncRemoteJob(self, told)

    async def job(self, job: str) -> "AsyncRemoteJob":
        """The job with this id."""
        return AsyncRemoteJob(self, await self.ask("GET", f"/jobs/{job}"))

    async def jobs(self, *, limit: int | None = None, **filters: Any) -> AsyncIterator["AsyncRemoteJob"]:
        """Jobs, newest first; `filters` are those of the API: `status`, `name`, `model`, `tenant`."""
        before, left = None, limit
        while left is None or left > 0:
            size = 100 if left is None else min(100, left)
            asked = wanted_of({**filters, "before": before, "limit": size})
            page = await self.ask("GET", "/jobs", params=asked)
            for told in page["jobs"]:
                yield AsyncRemoteJob(self, told)
            left = None if left is None else left - len(page["jobs"])
            before = page["next"]
            if before is None:
                return

    async def devices(self) -> list[dict[str, Any]]:
        """Hosts and devices of executors that carry something out."""
        found: list[dict[str, Any]] = (await self.ask("GET", "/devices"))["devices"]
        return found

    async def ask(self, method: str, path: str, **options: Any) -> dict[str, Any]:
        """The answer to one request of the API."""
        try:
            response = await self._http.request(method, path, **options)
        except httpx.HTTPError as error:
            raise unreachable(self.url, error) from error
        require_good(response)
        found: dict[str, Any] = response.json() if response.content else {}
        return found

    async def stream(self, path: str, last: str = "") -> AsyncIterator[JobEvent]:
        """The events of one connection."""
        reader = EventReader()
        extra = {"Last-Event-ID": last} if last else {}
        async with self._http.stream("GET", path, headers=extra) as response:
            if response.status_code >= 400:
                await response.aread()
                require_good(response)
            async for line in response.aiter_lines():
                event = reader.read(line)
                if event is not None:
                    yield event

    async def download(self, path: str, bundle: BundleFile) -> Path:
        """A bundle into its folder."""
        try:
            async with self._http.stream("GET", path) as response:
                if response.status_code >= 400:
                    await response.aread()
                    require_good(response)
                async for piece in response.aiter_bytes():
                    bundle.write(piece)
                return bundle.unpack(response.headers.get("X-Content-SHA256", ""))
        except httpx.HTTPError as error:
            raise unreachable(self.url, error) from error


async def _pieces(path: Path) -> AsyncIterator[bytes]:
    with path.open("rb") as file:
        while piece := await asyncio.to_thread(file.read, _PIECE):
            yield piece


class AsyncRemoteJob:
    """A job of a server; `details` is what the server told last."""

    def __init__(self, client: AsyncClient, details: dict[str, Any]) -> None:
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

    async def refresh(self) -> "AsyncRemoteJob":
        """Ask again."""
        self.details = await self._client.ask("GET", f"/jobs/{self.id}")
        return self

    async def events(self) -> AsyncIterator[JobEvent]:
        """What happens until it has ended; a connection that breaks off is made again where it was."""
        last, tries = "", 0
        while tries < _MOST_TRIES:
            try:
                async for event in self._client.stream(f"/jobs/{self.id}/events", last):
                    last, tries = event.id, 0
                    yield event
                    if event.name == "end":
                        return
            except httpx.HTTPError:
                pass
            tries += 1
            await asyncio.sleep(_AGAIN_S)
        raise ServiceError(f"can't reach {self._client.url} any more; job {self.id} goes on without us")

    async def wait(self) -> "AsyncRemoteJob":
        """Return when it has ended, however it did."""
        async for _ in self.events():
            continue
        return await self.refresh()

    async def fetch(self, folder: str | Path) -> Path:
        """Download its bundle into a new or empty folder."""
        with BundleFile(Path(folder)) as bundle:
            return await self._client.download(f"/jobs/{self.id}/bundle", bundle)

    async def cancel(self) -> "AsyncRemoteJob":
        """End it; what it measured is kept."""
        return await self._told("POST", f"/jobs/{self.id}/cancel")

    async def pause(self) -> "AsyncRemoteJob":
        """Start no new stage of it."""
        return await self._told("POST", f"/jobs/{self.id}/pause")

    async def resume(self) -> "AsyncRemoteJob":
        """Let it go on."""
        return await self._told("POST", f"/jobs/{self.id}/resume")

    async def prioritise(self, priority: int) -> "AsyncRemoteJob":
        """Give it another priority."""
        return await self._told("PATCH", f"/jobs/{self.id}", json={"priority": priority})

    async def _told(self, method: str, path: str, **options: Any) -> "AsyncRemoteJob":
        self.details = await self._client.ask(method, path, **options)
        return self
