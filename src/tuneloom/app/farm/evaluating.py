"""Timing a bundle on a board of a farm."""

from pathlib import Path
from statistics import median
from typing import Any

from tuneloom.app.bundles.models import LONGER, spread
from tuneloom.app.conducting.calling import call_in_worker
from tuneloom.app.farm.entries import RPC, DeviceEntry, FarmFile
from tuneloom.app.farm.kinds.finding import device_kind
from tuneloom.app.farm.kinds.rpc import ON_BOARD, board_of
from tuneloom.app.farm.reading import read_farm
from tuneloom.app.tasks.limits import OPEN_S
from tuneloom.errors import FarmError
from tuneloom.model import DeviceGone
from tuneloom.model.numbers import POSITIVE
from tuneloom.tuners.tvm.boards.session import environment_of
from tuneloom.tuners.tvm.bundles.loading import read_manifest

_EVALUATE = "tuneloom.tuners.tvm.bundles.on_board:evaluate_on_board"


def evaluate_on_farm(folder: Path, farm: Path, seconds: float, key: str | None = None) -> dict[str, Any]:
    """Time a bundle on the first usable board with its device key, or with the one that is given.

    Raises FarmError if there is none, and BundleError for a bundle that was built for something else.
    """
    POSITIVE.require("seconds", seconds)
    manifest = read_manifest(folder)
    wanted = key or str(manifest["provenance"]["device_key"])
    board = board_of(_usable(read_farm(farm), wanted))
    limit_s = LONGER * seconds + OPEN_S
    found = call_in_worker(
        ON_BOARD, _EVALUATE, limit_s, str(folder), seconds, environment=environment_of(board)
    )
    if isinstance(found, DeviceGone):
        raise FarmError(f"{board.name} was lost: {found.reason}")
    ordered = sorted(found["seconds"])
    return {"name": manifest["name"], "device": board.name, **found, **spread("", ordered)} | {
        "median_s": median(ordered)
    }


def _usable(farm: FarmFile, key: str) -> DeviceEntry:
    """The first board with a key that can be used; raises FarmError with the troubles of all."""
    boards = [entry for entry in farm.devices_with(key) if entry.kind == RPC]
    if not boards:
        known = ", ".join(repr(entry.key) for entry in farm.devices if entry.kind == RPC) or "none"
        raise FarmError(
            f"{farm.path} has no board with key {key!r}; known: {known}. Choose one with --device"
        )
    sights = [(entry, device_kind(RPC).look(entry)) for entry in boards]
    for entry, sight in sights:
        if sight.usable:
            return entry
    raise FarmError("; ".join(sight.trouble for _, sight in sights))
