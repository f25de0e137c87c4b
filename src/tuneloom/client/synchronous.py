"""A client for programs that wait."""

import time
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
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
        self._http = httpx.Client(**connection(self.url, token), transport=transport)

    def __enter__(self) -> "Client":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Let go of the connections."""
        self._http.close()

    def check(self) -> Told:
        """Whose token this is; raises ServiceError if server and client don't fit."""
        return self.converse(say.checking(self.url))

    def upload(self, path: str | Path) -> str:
        """Upload a model's file, or samples; returns its digest."""
        return self.converse(say.uploading(path))

    def submit(
        self, model: str | Path, *, key: str | None = None, **wanted: Unpack[JobOptions]
    ) -> "RemoteJob":
        """Submit a job; files are uploaded first, a name or a digest is taken as it is.

        `wanted` is what jobs files have: see JobOptions. With a `key` it can be submitted again without
        becoming two jobs.
        """
        return RemoteJob(self, self.converse(say.submitting(model, key, wanted)))

    def job(self, job: str) -> "RemoteJob":
        """The job with this id."""
        return RemoteJob(self, self.ask("GET", f"/jobs/{job}"))

    def jobs(self, *, limit: int | None = None, **filters: Any) -> Iterator["RemoteJob"]:
        """Jobs, newest first; `filters` are those of the API: `status`, `name`, `model`, `tenant`."""
        pages = JobPages(filters, limit, more=limit != 0)
        while pages.more:
            yield from (RemoteJob(self, told) for told in self.converse(pages.next()))

    def devices(self) -> list[Told]:
        """Hosts and devices of executors, idle ones included."""
        return self.converse(say.listing_devices())

    def converse(self, conversation: Conversation[Result]) -> Result:
        """Carry a conversation out, request by request."""
        try:
            asked = next(conversation)
            while True:
                asked = conversation.send(self._answer(asked))
        except StopIteration as end:
            result: Result = end.value
            return result

    def ask(self, method: str, path: str, **options: Any) -> Told:
        """The answer to one request of the API."""
        return self._answer(ApiRequest(method, path, options))

    def _answer(self, asked: ApiRequest) -> Told:
        patience, response = Patience(), self._response(asked)
        while wait_s := patience.wait_s(response):
            time.sleep(wait_s)
            response = self._response(asked)
        require_good(response)
        found: Told = response.json() if response.content else {}
        return found

    def _response(self, asked: ApiRequest) -> httpx.Response:
        with asked.file.open("rb") if asked.file is not None else nullcontext() as content:
            try:
                return self._http.request(asked.method, asked.path, content=content, **asked.options)
            except httpx.HTTPError as error:
                raise unreachable(self.url, error) from error

    def stream(self, path: str, last: str = "") -> Iterator[JobEvent]:
        """The events of one connection."""
        extra = {"Last-Event-ID": last} if last else {}
        with self._opened(path, extra) as response:
            yield from (JobEvent.of(sent) for sent in EventSource(response).iter_sse() if sent.data)

    def download(self, path: str, bundle: BundleFile) -> Path:
        """A bundle into its folder."""
        try:
            with self._opened(path, {}) as response:
                for piece in response.iter_bytes():
                    bundle.write(piece)
                return bundle.unpack(response.headers.get("X-Content-SHA256", ""))
        except httpx.HTTPError as error:
            raise unreachable(self.url, error) from error

    @contextmanager
    def _opened(self, path: str, headers: dict[str, str]) -> Iterator[httpx.Response]:
        """A good answer, of which nothing was read yet."""
        patience = Patience()
        while True:
            with self._http.stream("GET", path, headers=headers) as response:
                wait_s = patience.wait_s(response)
                if not wait_s:
                    if response.status_code >= 400:
                        response.read()
                    require_good(response)
                    yield response
                    return
            time.sleep(wait_s)


class RemoteJob(JobOfServer["RemoteJob"]):
    """A job of a server; `details` is what the server told last."""

    def __init__(self, client: Client, details: Told) -> None:
        super().__init__(details)
        self._client = client

    def events(self) -> Iterator[JobEvent]:
        """What happens until it has ended; a connection that breaks off is made again where it was."""
        listening = Listening(self.id, self._client.url)
        while True:
            try:
                for event in self._client.stream(listening.path, listening.last):
                    listening.heard(event)
                    yield event
                    if listening.ended:
                        return
            except httpx.HTTPError:
                pass
            listening.broke_off()
            time.sleep(say.AGAIN_S)

    def wait(self) -> "RemoteJob":
        """Return when it has ended, however it did."""
        for _ in self.events():
            continue
        return self.refresh()

    def fetch(self, folder: str | Path) -> Path:
        """Download its bundle into a new or empty folder."""
        with BundleFile(Path(folder)) as bundle:
            return self._client.download(f"/jobs/{self.id}/bundle", bundle)

    def _after(self, conversation: Conversation[None]) -> "RemoteJob":
        self._client.converse(conversation)
        return self
