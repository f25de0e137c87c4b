"""What every request goes through: an id, a bound on its body, safe headers, a line in the log, a time."""

import json
import logging
import secrets
import time
from collections.abc import Callable

from starlette.datastructures import Headers, MutableHeaders
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from tuneloom.server.problems import MEDIA_TYPE, Problem, problem_body

ACCESS_LOG = logging.getLogger("tuneloom.access")
_CSP = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "font-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
SAFE_HEADERS = {
    "content-security-policy": _CSP,
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
}
Timed = Callable[[str, str, int, float], None]


class TooLarge(HTTPException):
    """A body grew beyond its bound; of this family, since frameworks take others for a torn body."""

    def __init__(self, most_bytes: int) -> None:
        super().__init__(413, f"the body is larger than {most_bytes} bytes")


class RequestMiddleware:
    """The outermost part of the application.

    `streams` are the paths whose handlers bound the body themselves; `timed` is told method,
    name of the handler, status and seconds of every request.
    """

    def __init__(self, app: ASGIApp, most_body_bytes: int, streams: frozenset[str], timed: Timed) -> None:
        self._app = app
        self._most = most_body_bytes
        self._streams = streams
        self._timed = timed

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        passage = _Passage(scope, send)
        try:
            bound = None if scope["path"] in self._streams else self._most
            if bound is not None and _announced(scope) > bound:
                raise TooLarge(bound)
            await self._app(scope, _bounded(receive, bound), passage.send)
        except TooLarge as error:
            if passage.status == 0:
                await passage.refuse(Problem(413, error.detail))
        finally:
            self._tell(scope, passage)

    def _tell(self, scope: Scope, passage: "_Passage") -> None:
        took_s = time.perf_counter() - passage.began_s
        route = getattr(scope.get("route"), "name", "")
        self._timed(scope["method"], route, passage.status, took_s)
        line = {
            "request": passage.request_id,
            "client": (scope.get("client") or ("", 0))[0],
            "token": scope["state"].get("token", ""),
            "method": scope["method"],
            "path": scope["path"],
            "status": passage.status,
            "ms": round(took_s * 1e3, 1),
        }
        ACCESS_LOG.info("%s", json.dumps(line))


class _Passage:
    """One request on its way; adds headers to the answer and remembers its status."""

    def __init__(self, scope: Scope, send: Send) -> None:
        self.request_id = secrets.token_hex(8)
        self.began_s = time.perf_counter()
        self.status = 0
        self._send = send
        scope.setdefault("state", {})["request_id"] = self.request_id

    async def send(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.status = message["status"]
            headers = MutableHeaders(scope=message)
            headers["x-request-id"] = self.request_id
            for name, value in SAFE_HEADERS.items():
                headers.setdefault(name, value)
            headers.setdefault("cache-control", "no-store")
        await self._send(message)

    async def refuse(self, problem: Problem) -> None:
        body = json.dumps(problem_body(problem, self.request_id)).encode()
        headers = [(b"content-type", MEDIA_TYPE.encode()), (b"content-length", str(len(body)).encode())]
        await self.send({"type": "http.response.start", "status": problem.status, "headers": headers})
        await self.send({"type": "http.response.body", "body": body})


def _announced(scope: Scope) -> int:
    length = Headers(scope=scope).get("content-length", "0")
    return int(length) if length.isascii() and length.isdigit() and len(length) < 19 else 0


def _bounded(receive: Receive, bound: int | None) -> Receive:
    if bound is None:
        return receive
    seen = 0

    async def receiving() -> Message:
        nonlocal seen
        message = await receive()
        seen += len(message.get("body", b""))
        if seen > bound:
            raise TooLarge(bound)
        return message

    return receiving
