"""Uploaded models: their names, their files, and what another process finds in them."""

import json
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from tuneloom.app.hosting.looking import TIMEOUT_S
from tuneloom.errors import ModelError
from tuneloom.store import ModelRecord, ModelState, Store, digest_of, pieces_of

_MOST_NAME = 120


def keep_upload(
    store: Store, tenant: str, name: str, path: Path, formats: Sequence[str]
) -> tuple[ModelRecord, bool]:
    """Keep a complete file as a model of a tenant; says whether it is new.

    The name is for people only. Raises ModelError for a name without a known ending, QuotaError if
    the tenant has no room; then nothing is kept.
    """
    shown = require_file_name(name, formats)
    digest = digest_of(path)
    known = store.model(tenant, digest)
    owner = blob_owner(tenant, digest)
    if known is not None:
        return _with_file(store, known, path, owner), False
    store.put_blob(pieces_of(path), owner)
    try:
        return store.add_model(tenant, digest, shown, path.stat().st_size), True
    except BaseException:
        store.drop_blobs(owner)
        raise


def _with_file(store: Store, known: ModelRecord, path: Path, owner: str) -> ModelRecord:
    """A model that is known; one whose file was lost gets it back and is looked into anew."""
    if store.has_blob(known.digest):
        return known
    store.put_blob(pieces_of(path), owner)
    store.describe_model(known.tenant, known.digest, ModelState.CHECKING, {})
    return replace(known, state=ModelState.CHECKING, summary={})


def blob_owner(tenant: str, digest: str) -> str:
    """Who needs the file of a model."""
    return f"model:{tenant}:{digest}"


def require_file_name(name: str, formats: Sequence[str]) -> str:
    """The last part of a name, without anything that a terminal or a path would take as a command."""
    last = name.replace("\\", "/").rpartition("/")[2]
    plain = "".join(letter if letter.isprintable() else "_" for letter in last)[-_MOST_NAME:]
    if not plain.lower().endswith(tuple(formats)) or plain.startswith("."):
        known = ", ".join(formats)
        raise ModelError(f"{plain[:60]!r} is not a model file; its name must end with {known}", field="name")
    return plain


_LOOKER = "tuneloom.app.hosting.looking"
_MOST_OUTPUT = 1 << 20


def inspect_upload(store: Store, record: ModelRecord) -> ModelState:
    """Find out what is in a model and keep it; returns how the model stands now."""
    found = _found(store, record) if store.has_blob(record.digest) else _GONE
    state = ModelState.REFUSED if "reason" in found else ModelState.READY
    store.describe_model(record.tenant, record.digest, state, found)
    return state


_GONE = {"reason": "its file is gone; upload it again"}


def _found(store: Store, record: ModelRecord) -> dict[str, Any]:
    with tempfile.TemporaryDirectory(prefix="tuneloom-look-") as folder:
        path = Path(folder) / f"model{record.name[record.name.rfind('.') :].lower()}"
        with path.open("wb") as file:
            for piece in store.blob(record.digest):
                file.write(piece)
        return look_into(path)


def look_into(path: Path, timeout_s: float = TIMEOUT_S) -> dict[str, Any]:
    """What another process finds in a file; a `reason` says why it can't be used.

    A file is hostile until shown otherwise: that process has little memory and little time, and can't
    take the server down with it.
    """
    words = [sys.executable, "-m", _LOOKER, str(path)]
    try:
        ended = subprocess.run(words, capture_output=True, timeout=timeout_s, check=False)
    except subprocess.TimeoutExpired:
        return {"reason": f"looking into it took more than {timeout_s:g} s"}
    if ended.returncode != 0 or len(ended.stdout) > _MOST_OUTPUT:
        return {"reason": "it can't be read: it is damaged, or made to do harm"}
    found: dict[str, Any] = json.loads(ended.stdout)
    return found
