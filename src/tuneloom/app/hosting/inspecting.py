"""Looking into an uploaded model, in a process of its own with little memory and little time.

A file is hostile until shown otherwise: what reads it can't take the server down with it.
"""

import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from tuneloom.app.hosting.looking import TIMEOUT_S
from tuneloom.store import ModelRecord, ModelState, Store

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
    """What another process finds in a file; a `reason` says why it can't be used."""
    words = [sys.executable, "-m", _LOOKER, str(path)]
    try:
        ended = subprocess.run(words, capture_output=True, timeout=timeout_s, check=False)
    except subprocess.TimeoutExpired:
        return {"reason": f"looking into it took more than {timeout_s:g} s"}
    if ended.returncode != 0 or len(ended.stdout) > _MOST_OUTPUT:
        return {"reason": "it can't be read: it is damaged, or made to do harm"}
    found: dict[str, Any] = json.loads(ended.stdout)
    return found
