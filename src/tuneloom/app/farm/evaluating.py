"""Timing a bundle on a board of a farm."""

from pathlib import Path
from typing import Any

from tuneloom.app.conducting.calling import call_in_worker
from tuneloom.app.devices.base import MachineCores
from tuneloom.app.devices.describing import device_kind
from tuneloom.app.evaluating import LONGER, spread
from tuneloom.app.farm.reading import FarmFile, read_farm
from tuneloom.app.tasks.limits import OPEN_S
from tuneloom.engine.machine import Offer
from tuneloom.errors import FarmError
from tuneloom.model import LOCAL, DeviceGone
from tuneloom.model.fields import POSITIVE
from tuneloom.tuners.tvm.bundles.loading import read_manifest

_EVALUATE = "tuneloom.tuners.tvm.bundles.on_board:evaluate_on_board"
_ALONE = MachineCores(name=LOCAL, host_cores=frozenset(), device_cores=frozenset())


def evaluate_on_farm(folder: Path, farm: Path, seconds: float, key: str | None = None) -> dict[str, Any]:
    """Time a bundle on the first usable board with its device key, or with the one that is given.

    Raises FarmError if there is none, and BundleError for a bundle that was built for something else.
    """
    POSITIVE.require("seconds", seconds)
    manifest = read_manifest(folder)
    wanted = key or str(manifest["provenance"]["device_key"])
    board = _usable(read_farm(farm), wanted)
    name = board.resource.name
    limit_s = LONGER * seconds + OPEN_S
    found = call_in_worker(
        board.through,
        _EVALUATE,
        limit_s,
        str(folder),
        seconds,
        environment=board.environment,
        locks=board.locks,
    )
    if isinstance(found, DeviceGone):
        raise FarmError(f"{name} was lost: {found.reason}")
    return {"name": manifest["name"], "device": name, **found, **spread("", sorted(found["seconds"]))}


def _usable(farm: FarmFile, key: str) -> Offer:
    """The first board with a key that can be used; raises FarmError with the troubles of all."""
    boards = [entry for entry in farm.devices if device_kind(entry.kind).only_runtime]
    states = [(entry, device_kind(entry.kind).look(entry)) for entry in boards if entry.key == key]
    if not states:
        known = ", ".join(repr(entry.key) for entry in boards) or "none"
        raise FarmError(
            f"{farm.path} has no board with key {key!r}; known: {known}. Choose one with --device"
        )
    for entry, state in states:
        if state.usable:
            return device_kind(entry.kind).offer(entry, _ALONE)
    raise FarmError("; ".join(state.trouble for _, state in states))
