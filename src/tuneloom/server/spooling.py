"""A body that is too large for memory, on its way to the store."""

import hashlib
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from fastapi import Request
from starlette.concurrency import run_in_threadpool
from starlette.requests import ClientDisconnect

from tuneloom.server.problems import Problem


@dataclass(frozen=True, slots=True, kw_only=True)
class Spooled:
    """A complete body in a file that lives as long as its request."""

    path: Path
    digest: str
    size_bytes: int


@asynccontextmanager
async def spooled(request: Request, most_bytes: int) -> AsyncIterator[Spooled]:
    """Write the body to a file under a name of ours.

    Raises Problem if it is empty, too large, or breaks off; then nothing stays.
    """
    digest, size = hashlib.sha256(), 0
    with tempfile.NamedTemporaryFile(prefix="tuneloom-upload-") as file:
        try:
            async for piece in request.stream():
                size += len(piece)
                if size > most_bytes:
                    raise Problem(413, f"a model may have at most {most_bytes} bytes")
                digest.update(piece)
                await run_in_threadpool(file.write, piece)
        except ClientDisconnect as error:
            raise Problem(400, "the upload broke off; send it again") from error
        if size == 0:
            raise Problem(422, "the body is empty; send the model's file", "body")
        await run_in_threadpool(file.flush)
        yield Spooled(path=Path(file.name), digest=digest.hexdigest(), size_bytes=size)
