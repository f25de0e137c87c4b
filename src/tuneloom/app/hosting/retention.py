"""Removing what is older than an operator wants to keep, and what nobody owns any more."""

import time
from collections.abc import Iterator
from dataclasses import dataclass

from tuneloom.app.hosting.bundles import bundle_owner
from tuneloom.app.hosting.uploads import blob_owner
from tuneloom.errors import ConflictError
from tuneloom.model.fields import POSITIVE
from tuneloom.store import Store

_DAY_S = 86_400.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Retention:
    """For how many days bundles, uploaded models and logs are kept; None means for ever."""

    bundles_days: float | None = None
    models_days: float | None = None
    logs_days: float | None = None

    def __post_init__(self) -> None:
        for name in ("bundles_days", "models_days", "logs_days"):
            value = getattr(self, name)
            if value is not None:
                POSITIVE.require(name, value)


@dataclass(frozen=True, slots=True, kw_only=True)
class Removal:
    """Something that is removed, or would be."""

    kind: str
    name: str
    size_bytes: int | None = None


def collect(store: Store, retention: Retention, *, dry_run: bool = False) -> Iterator[Removal]:
    """Remove what is too old, one by one, and tell it; with `dry_run`, only tell it.

    Nothing that a job needs is removed: not the model of one that waits, runs or is paused, nor the
    log of a run that goes on. Records of the bank and results of jobs stay.
    """
    now = time.time()
    if retention.bundles_days is not None:
        yield from _bundles(store, now - retention.bundles_days * _DAY_S, dry_run)
    if retention.models_days is not None:
        yield from _models(store, now - retention.models_days * _DAY_S, dry_run)
    if retention.logs_days is not None:
        yield from _logs(store, now - retention.logs_days * _DAY_S, dry_run)
    yield from _unused(store, dry_run)


def _bundles(store: Store, before: float, dry_run: bool) -> Iterator[Removal]:
    for bundle in store.old_bundles(before):
        if not dry_run:
            store.remove_bundle(bundle.run)
            store.drop_blobs(bundle_owner(bundle.run))
        yield Removal(kind="bundle", name=bundle.run, size_bytes=bundle.size_bytes)


def _models(store: Store, before: float, dry_run: bool) -> Iterator[Removal]:
    for model in store.old_models(before):
        try:
            if not dry_run and store.remove_model(model.tenant, model.digest):
                store.drop_blobs(blob_owner(model.tenant, model.digest))
        except ConflictError:  # a job came in between
            continue
        yield Removal(kind="model", name=f"{model.tenant}/{model.name}", size_bytes=model.size_bytes)


def _logs(store: Store, before: float, dry_run: bool) -> Iterator[Removal]:
    for run in store.old_logs(before):
        if not dry_run:
            store.remove_logs(run)
        yield Removal(kind="log", name=run)


def _unused(store: Store, dry_run: bool) -> Iterator[Removal]:
    """Files whose last owner was gone before they came, as after a crash."""
    found = store.unused_blobs()
    if found and not dry_run:
        store.remove_unused_blobs(digest for digest, _ in found)
    for digest, size in found:
        yield Removal(kind="file", name=digest, size_bytes=size)
