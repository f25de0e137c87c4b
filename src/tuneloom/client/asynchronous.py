"""A client for programs with an event loop; the same as the one that waits, with `await`."""

import asyncio
from collections.abc import AsyncIterator, Coroutine
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Unpack

import httpx
from httpx_sse import EventSource

from tuneloom.client import conversations as say
from tuneloom.client.conversations import (
    ApiRequest,
    Conversation,
    JobOfServer,
    JobPages,
    Listening,
    Result,
    Told,
)
from tuneloom.client.exchange import JobEvent, Patience, connection, require_good, unreachable
from tuneloom.client.logins import server_url
from tuneloom.client.unpacking import BundleFile
from tuneloom.model.options import JobOptions

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
        self._http = httpx.AsyncClient(**connection(self.url, token), transport=transport)

    async def __aenter__(self) -> "AsyncClient":
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Let go of the connections."""
        await self._http.aclose()

    async def check(self) -> Told:
        """Whose token this is; raises ServiceError if server and client don't fit."""
        return await self.converse(say.checking(self.url))

    async def upload(self, path: str | Path) -> str:
        """Upload a model's file, or samples; returns its digest."""
        return await self.converse(say.uploading(path))

    async def submit(
        self, model: str | Path, *, key: str | None = None, **wanted: Unpack[JobOptions]
    ) -> "AsyncRemoteJob":
        """Submit a job; files are uploaded first, a name or a digest is taken as it is.

        `wanted` is what jobs files have: see JobOptions. With a `key` it can be submitted again without
        becoming two jobs.
        """
        return AsyncRemoteJob(self, await self.converse(say.submitting(model, key, wanted)))

    async def job(self, job: str) -> "AsyncRemoteJob":
        """The job with this id."""
        return AsyncRemoteJob(self, await self.ask("GET", f"/jobs/{job}"))

    async def jobs(self, *, limit: int | None = None, **filters: Any) -> AsyncIterator["AsyncRemoteJob"]:
        """Jobs, newest first; `filters` are those of the API: `status`, `name`, `model`, `tenant`."""
        pages = JobPages(filters, limit, more=limit != 0)
        while pages.more:
            for told in await self.converse(pages.next()):
                yield AsyncRemoteJob(self, told)

    async def devices(self) -> list[Told]:
        """Hosts and devices of executors, idle ones included."""
        return await self.converse(say.listing_devices())

    async def converse(self, conversation: Conversation[Result]) -> Result:
        """Carry a conversation out, request by request."""
        try:
            asked = next(conversation)
            while True:
                asked = conversation.send(await self._answer(asked))
        except StopIteration as end:
            result: Result = end.value
            return result

    async def ask(self, method: str, path: str, **options: Any) -> Told:
        """The answer to one request of the API."""
        return await self._answer(ApiRequest(method, path, options))

    async def _answer(self, asked: ApiRequest) -> Told:
        patience, response = Patience(), await self._response(asked)
        while wait_s := patience.wait_s(response):
            await asyncio.sleep(wait_s)
            response = await self._response(asked)
        require_good(response)
        found: Told = response.json() if response.content else {}
        return found

    async def _response(self, asked: ApiRequest) -> httpx.Response:
        content = None if asked.file is None else _pieces(asked.file)
        try:
            return await self._http.request(asked.method, asked.path, content=content, **asked.options)
        except httpx.HTTPError as error:
            raise unreachable(self.url, error) from error

    async def stream(self, path: str, last: str = "") -> AsyncIterator[JobEvent]:
        """The events of one connection."""
        extra = {"Last-Event-ID": last} if last else {}
        async with self._opened(path, extra) as response:
            async for sent in EventSource(response).aiter_sse():
                if sent.data:
                    yield JobEvent.of(sent)

    async def download(self, path: str, bundle: BundleFile) -> Path:
        """A bundle into its folder."""
        try:
            async with self._opened(path, {}) as response:
                async for piece in response.aiter_bytes():
                    bundle.write(piece)
                return bundle.unpack(response.headers.get("X-Content-SHA256", ""))
        except httpx.HTTPError as error:
            raise unreachable(self.url, error) from error

    @asynccontextmanager
    async def _opened(self, path: str, headers: dict[str, str]) -> AsyncIterator[httpx.Response]:
        """A good answer, of which nothing was read yet."""
        patience = Patience()
        while True:
            async with self._http.stream("GET", path, headers=headers) as response:
                wait_s = patience.wait_s(response)
                if not wait_s:
                    if response.status_code >= 400:
                        await response.aread()
                    require_good(response)
                    yield response
                    return
            await asyncio.sleep(wait_s)


async def _pieces(path: Path) -> AsyncIterator[bytes]:
    with path.open("rb") as file:
        while piece := await asyncio.to_thread(file.read, _PIECE):
            yield piece


class AsyncRemoteJob(JobOfServer[Coroutine[Any, Any, "AsyncRemoteJob"]]):
    """A job of a server; `details` is what the server told last."""

    def __init__(self, client: AsyncClient, details: Told) -> None:
        super().__init__(details)
        self._client = client

    async def events(self) -> AsyncIterator[JobEvent]:
        """What happens until it has ended; a connection that breaks off is made again where it was."""
        listening = Listening(self.id, self._client.url)
        while True:
            try:
                async for event in self._client.stream(listening.path, listening.last):
                    listening.heard(event)
                    yield event
                    if listening.ended:
                        return
            except httpx.HTTPError:
                pass
            listening.broke_off()
            await asyncio.sleep(say.AGAIN_S)

    async def wait(self) -> "AsyncRemoteJob":
        """Return when it has ended, however it did."""
        async for _ in self.events():
            continue
        return await self.refresh()

    async def fetch(self, folder: str | Path) -> Path:
        """Download its bundle into a new or empty folder."""
        with BundleFile(Path(folder)) as bundle:
            return await self._client.download(f"/jobs/{self.id}/bundle", bundle)

    async def _after(self, conversation: Conversation[None]) -> "AsyncRemoteJob":
        await self._client.converse(conversation)
        return self
