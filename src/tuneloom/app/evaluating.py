"""Timing bundles on this machine: alone, or beside their model in another runtime."""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

from tuneloom.app.conducting.calling import call_in_worker
from tuneloom.app.devices.describing import MachineOrder, describe
from tuneloom.app.tasks.limits import OPEN_S
from tuneloom.backends.finding import backend_named
from tuneloom.errors import TargetError
from tuneloom.model.fields import COUNT, POSITIVE
from tuneloom.tuners.tvm.bundles.loading import read_manifest

LONGER = 10  # than asked for, at most: the model runs a few times, however slow it is


def evaluate_bundle(folder: Path, seconds: float, device_cores: int | None = None) -> dict[str, Any]:
    """Time a bundle: median, spread and all runs, and what its device tells of itself and of its energy.

    On a CPU it runs on as many cores as it was measured on when it was tuned, the last ones, unless
    `device_cores` says otherwise; raises TargetError if there are fewer.
    """
    POSITIVE.require("seconds", seconds)
    manifest = read_manifest(folder)
    place = _place_for(folder, manifest, device_cores)
    found = call_in_worker(
        "tuneloom.tuners.tvm.bundles.using:time_bundle",
        str(folder),
        seconds,
        **place.call,
        timeout_s=LONGER * seconds + OPEN_S,
    )
    return {
        "name": manifest["name"],
        "device_cores": place.cores,
        **spread("", sorted(found["seconds"])),
        **found,
    }


def compare_bundle(
    folder: Path, against: str, seconds: float, device_cores: int | None = None
) -> dict[str, Any]:
    """A bundle beside its model in another runtime: timed in turn on the same cores, outputs compared.

    The runtime's fastest way to run the model counts; `rivals` has all of them.
    """
    POSITIVE.require("seconds", seconds)
    manifest = read_manifest(folder)
    place = _place_for(folder, manifest, device_cores)
    found = call_in_worker(
        "tuneloom.tuners.tvm.bundles.using:compare_bundle",
        str(folder),
        against,
        seconds,
        place.cores,
        **place.call,
        timeout_s=LONGER * seconds + OPEN_S,
    )
    ours = sorted(found["seconds"])
    rivals = [each if "failed" in each else _timed(each, ours) for each in found["rivals"]]
    best = min((each for each in rivals if "ratio" in each), key=lambda each: float(each["median_s"]))
    return {
        "name": manifest["name"],
        "device_cores": place.cores,
        "against": against,
        "tf32": found["tf32"],
        "difference": best["difference"],
        **spread("", ours),
        **{f"against_{key}": best[key] for key in ("name", *spread("", ours))},
        "ratio": best["ratio"],
        "rivals": rivals,
    }


def _timed(rival: Mapping[str, Any], ours: list[float]) -> dict[str, Any]:
    """One way of another runtime: its times, and what the bundle takes against it."""
    times = sorted(rival["seconds"])
    ratio = median(ours) / median(times)
    return {"name": rival["name"], "difference": rival["difference"], **spread("", times), "ratio": ratio}


def spread(prefix: str, ordered: list[float]) -> dict[str, Any]:
    """How many times there are, their median, and between which values most of them lie."""
    return {
        f"{prefix}runs": len(ordered),
        f"{prefix}median_s": median(ordered),
        f"{prefix}low_s": ordered[len(ordered) // 10],
        f"{prefix}high_s": ordered[(9 * len(ordered)) // 10],
    }


@dataclass(frozen=True, slots=True, kw_only=True)
class _Place:
    """Where a bundle is timed: how many cores it has, and how a worker gets the device to itself."""

    cores: int
    call: dict[str, Any]


def _place_for(folder: Path, manifest: Mapping[str, Any], wanted: int | None) -> _Place:
    """Cores of this machine, or its first device of the kind that the bundle was built for.

    Raises TargetError if there is no such thing.
    """
    target = manifest["target"]
    name = str(target.get("backend") or target["device"])
    if backend_named(name).on_host:
        cores = _cores_for(folder, manifest, wanted)
        return _Place(cores=len(cores), call={"cores": cores})
    offers = (offer for offer in describe(MachineOrder()).offers if offer.target == name)
    offer = next(offers, None)
    if offer is None:
        raise TargetError(f"{folder} was built for {name}, and this machine has no such device")
    every = len(os.sched_getaffinity(0))
    return _Place(cores=every, call={"environment": offer.environment, "locks": offer.locks})


def _cores_for(folder: Path, manifest: Mapping[str, Any], wanted: int | None) -> frozenset[int]:
    """The cores to time a bundle on; bundles of earlier versions don't say, and had one."""
    if wanted is not None:
        COUNT.require("device_cores", wanted)
    count = wanted or manifest["provenance"].get("device_cores") or 1
    here = sorted(os.sched_getaffinity(0))
    if count > len(here):
        whose = f"{folder} was measured on" if wanted is None else "--device-cores asks for"
        raise TargetError(
            f"{whose} {count} cores, but {len(here)} are available; give --device-cores {len(here)}"
        )
    return frozenset(here[-count:])
