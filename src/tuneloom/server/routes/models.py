"""Models: upload, list, look at, remove."""

import hashlib
import pathlib
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Annotated

from fastapi import APIRouter, Path, Query, Request, Response
from starlette.concurrency import run_in_threadpool
from starlette.requests import ClientDisconnect

from tuneloom.app.hosting.uploads import blob_owner, keep_upload
from tuneloom.app.requests.schema import uploads
from tuneloom.server.access.callers import Reader, Submitter
from tuneloom.server.bodies.knowledge import ModelPage, ModelTold
from tuneloom.server.parameters import Before, Limit, next_of
from tuneloom.server.problems import Problem, documented
from tuneloom.server.state import Served
from tuneloom.server.telling import model_told


@dataclass(frozen=True, slots=True, kw_only=True)
class Spooled:
    """A complete body in a file that lives as long as its request."""

    path: pathlib.Path
    digest: str


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
        yield Spooled(path=pathlib.Path(file.name), digest=digest.hexdigest())


ROUTER = APIRouter(prefix="/models", tags=["models"])
Digest = Annotated[str, Path(pattern=r"^[0-9a-f]{64}$", description="the SHA-256 of the file")]
_BODY = {"content": {"application/octet-stream": {"schema": {"type": "string", "format": "binary"}}}}


@ROUTER.post(
    "",
    status_code=201,
    responses={
        200: {"model": ModelTold, "description": "the model was there already"},
        **documented(409, 413, 415, 422),
    },
    openapi_extra={"requestBody": {"required": True, **_BODY}},
)
async def upload_model(
    request: Request,
    response: Response,
    service: Served,
    caller: Submitter,
    name: Annotated[
        str, Query(max_length=200, description="the file's name, with the extension of its format")
    ],
    digest: Annotated[
        str | None, Query(pattern=r"^[0-9a-f]{64}$", description="the SHA-256 it must have")
    ] = None,
) -> ModelTold:
    """Upload a model, or samples (.npz), as the body of the request; a repeated upload changes nothing."""
    _require_kind(request)
    async with spooled(request, service.settings.most_model_bytes) as file:
        if digest is not None and file.digest != digest:
            raise Problem(422, f"the body has the digest {file.digest}, not the one given", "digest")

        formats = (*service.settings.formats, *uploads().values())

        def kept() -> tuple[ModelTold, bool]:
            with service.stores.lent() as store:
                record, new = keep_upload(store, caller.tenant, name, file.path, formats)
                if new:
                    store.add_audit(caller.entry("upload model", record.digest, name=record.name))
                return model_told(record), new

        told, new = await run_in_threadpool(kept)
    if not new:
        response.status_code = 200
    service.inspector.wake()
    return told


def _require_kind(request: Request) -> None:
    kind = request.headers.get("content-type", "application/octet-stream").partition(";")[0].strip().lower()
    if kind != "application/octet-stream":
        raise Problem(415, "send the file itself, as application/octet-stream", "Content-Type")


@ROUTER.get("", responses=documented(422))
def list_models(service: Served, caller: Reader, before: Before = None, limit: Limit = 50) -> ModelPage:
    """The models of your tenant, newest first."""
    with service.stores.lent() as store:
        found = store.models(caller.tenant, before=before, limit=limit)
    return ModelPage(models=[model_told(record) for record in found], next=next_of(found, limit))


@ROUTER.get("/{digest}", responses=documented(404, 422))
def show_model(service: Served, caller: Reader, digest: Digest) -> ModelTold:
    """One model."""
    with service.stores.lent() as store:
        record = store.model(caller.tenant, digest)
    if record is None:
        raise Problem(404, f"no model with digest {digest[:12]}…")
    return model_told(record)


@ROUTER.delete("/{digest}", status_code=204, responses=documented(404, 409, 422))
def remove_model(service: Served, caller: Submitter, digest: Digest) -> None:
    """Delete a model that no job needs any more."""
    with service.stores.lent() as store:
        if not store.remove_model(caller.tenant, digest):
            raise Problem(404, f"no model with digest {digest[:12]}…")
        store.drop_blobs(blob_owner(caller.tenant, digest))
        store.add_audit(caller.entry("remove model", digest))
