"""What can be asked about models, bundles and records without tuning."""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

from tuneloom.app.bundles.lowered import lowered_folder
from tuneloom.app.conducting.calling import call_in_worker
from tuneloom.app.tasks.limits import OPEN_S
from tuneloom.errors import TargetError
from tuneloom.model import ModelRecipe, ModelSummary, Shapes, Task
from tuneloom.model.numbers import COUNT, POSITIVE
from tuneloom.store import open_existing
from tuneloom.tuners.tvm.bundles.loading import read_manifest
from tuneloom.tuners.tvm.importing.sources import require_source
from tuneloom.tuners.tvm.models.remembering import recall

LONGER = 10  # than asked for, at most: the model runs a few times, however slow it is


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownTask:
    """A task with what the bank knows of its workload."""

    task: Task
    records: int
    best_s: float | None


def list_tasks(model: str, target: str, shape_sets: Sequence[Shapes], place: str | None) -> list[KnownTask]:
    """What would be tuned for these sets of shapes, and what is known already."""
    require_source(model)
    shapes, *more = shape_sets
    recipe = ModelRecipe(
        key="tasks",
        source=model,
        shapes=shapes,
        more_shapes=tuple(more),
        target=target,
        lowered_folder=lowered_folder(),
    )
    summary = recall(recipe) or _opened(recipe)
    store = open_existing(place)
    try:
        return [_known(store, task, summary.family) for task in summary.tasks]
    finally:
        store.close()


def _opened(recipe: ModelRecipe) -> ModelSummary:
    summary: ModelSummary = call_in_worker("tuneloom.tuners.tvm.models.opening:open_model", recipe)
    return summary


def _known(store: Any, task: Task, family: str) -> KnownTask:
    records = store.workload_trials(task.key, family, 10_000)
    best = records[0].seconds if records else None
    return KnownTask(task=task, records=len(records), best_s=best)


def evaluate_bundle(folder: Path, seconds: float, device_cores: int | None = None) -> dict[str, Any]:
    """Time a bundle: median, spread and all runs.

    It runs on as many cores as it was measured on when it was tuned, the last ones, unless
    `device_cores` says otherwise; raises TargetError if there are fewer.
    """
    POSITIVE.require("seconds", seconds)
    manifest = read_manifest(folder)
    cores = _cores_for(folder, manifest, device_cores)
    times = call_in_worker(
        "tuneloom.tuners.tvm.bundles.using:time_bundle",
        str(folder),
        seconds,
        cores=cores,
        timeout_s=LONGER * seconds + OPEN_S,
    )
    ordered = sorted(times)
    return {
        "name": manifest["name"],
        "device_cores": len(cores),
        "runs": len(times),
        "median_s": median(times),
        "low_s": ordered[len(ordered) // 10],
        "high_s": ordered[(9 * len(ordered)) // 10],
        "seconds": times,
    }


def compare_bundle(
    folder: Path, against: str, seconds: float, device_cores: int | None = None
) -> dict[str, Any]:
    """A bundle beside its model's own runtime: both timed in turn on the same cores, outputs compared."""
    POSITIVE.require("seconds", seconds)
    manifest = read_manifest(folder)
    cores = _cores_for(folder, manifest, device_cores)
    found = call_in_worker(
        "tuneloom.tuners.tvm.bundles.using:compare_bundle",
        str(folder),
        against,
        seconds,
        len(cores),
        cores=cores,
        timeout_s=LONGER * seconds + OPEN_S,
    )
    ours, theirs = sorted(found["seconds"]), sorted(found["against_s"])
    return {
        "name": manifest["name"],
        "device_cores": len(cores),
        "against": against,
        "difference": found["difference"],
        **spread("", ours),
        **spread("against_", theirs),
        "ratio": median(ours) / median(theirs),
    }


def spread(prefix: str, ordered: list[float]) -> dict[str, Any]:
    """How many times there are, their median, and between which values most of them lie."""
    return {
        f"{prefix}runs": len(ordered),
        f"{prefix}median_s": median(ordered),
        f"{prefix}low_s": ordered[len(ordered) // 10],
        f"{prefix}high_s": ordered[(9 * len(ordered)) // 10],
    }


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


def run_bundle(folder: Path, inputs: list[Path], outputs: list[Path]) -> None:
    """Run a bundle on NumPy files; the outputs are written all or not at all."""
    read_manifest(folder)
    call_in_worker(
        "tuneloom.tuners.tvm.bundles.using:run_on_files",
        str(folder),
        list(map(str, inputs)),
        list(map(str, outputs)),
        timeout_s=None,
    )
