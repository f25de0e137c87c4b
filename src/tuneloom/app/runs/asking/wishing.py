"""What others want of a job: done at once while it waits, left for its executor otherwise."""

from collections.abc import Mapping
from typing import Any

from tuneloom.store import Store, WishKind, owner_of

_NOTHING: Mapping[str, Any] = {}


def wish(store: Store, run: str, kind: WishKind, job: str, body: Mapping[str, Any] = _NOTHING) -> bool:
    """Change a job, or leave a wish; says whether it is done already.

    Raises StoreError if the run has ended.
    """
    if not store.change_waiting(run, kind, job, body):
        store.add_wish(run, kind, job, body)
        return False
    if kind is WishKind.CANCEL and all(record.status.ended for record in store.jobs(run)):
        store.drop_blobs(owner_of(run))
    return True
