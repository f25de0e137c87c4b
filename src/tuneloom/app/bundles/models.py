"""What can be asked about models, bundles and records without tuning."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tuneloom.app.bundles.folders import lowered_folder
from tuneloom.app.conducting.calling import call_in_worker
from tuneloom.model import ModelRecipe, ModelSummary, Shapes, Task
from tuneloom.store import open_existing
from tuneloom.tuners.tvm.bundles.loading import read_manifest
from tuneloom.tuners.tvm.importing.sources import require_source
from tuneloom.tuners.tvm.models.remembering import recall


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
    with open_existing(place) as store:
        return [_known(store, task, summary.family) for task in summary.tasks]


def _opened(recipe: ModelRecipe) -> ModelSummary:
    summary: ModelSummary = call_in_worker("tuneloom.tuners.tvm.models.opening:open_model", recipe)
    return summary


def _known(store: Any, task: Task, family: str) -> KnownTask:
    records = store.workload_trials(task.key, family, 10_000)
    best = records[0].seconds if records else None
    return KnownTask(task=task, records=len(records), best_s=best)


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
