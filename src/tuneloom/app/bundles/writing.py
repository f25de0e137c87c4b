"""Writing bundles: all of one or nothing."""

import json
import os
import shutil
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import Any

from tuneloom import __version__
from tuneloom.app.kinds.model.job import ModelJob
from tuneloom.app.kinds.results import interface, job_result, schedules
from tuneloom.errors import OutputError
from tuneloom.tuners.tvm.bundles import runner as bundle_runner
from tuneloom.tuners.tvm.bundles.loading import FORMAT, MANIFEST, RUNNER, SCHEDULES


def require_free(folder: Path) -> None:
    """Raise OutputError unless a bundle can be written there."""
    if folder.is_dir() and any(folder.iterdir()):
        raise OutputError(f"{folder} is not empty; choose another folder with --out or empty it")
    if folder.exists() and not folder.is_dir():
        raise OutputError(f"{folder} is a file; choose a folder with --out")
    parent = folder.absolute().parent
    while not parent.exists():
        parent = parent.parent
    try:
        os.rmdir(tempfile.mkdtemp(prefix=".tuneloom-", dir=parent))
    except OSError as error:
        raise OutputError(
            f"{parent} can't be written to ({error.strerror}); choose another place with --out"
        ) from error


def unfinished(folder: Path) -> Path:
    """Where a bundle grows until it is complete."""
    place = folder.absolute()
    return place.with_name(f".{place.name}.unfinished")


def prepare(folder: Path) -> Path:
    """Make the place where the bundle grows, empty."""
    place = unfinished(folder)
    try:
        shutil.rmtree(place, ignore_errors=True)
        place.mkdir(parents=True)
    except OSError as error:
        raise OutputError(
            f"can't write {folder}: {error.strerror}; choose another place with --out"
        ) from error
    return place


def discard(folder: Path) -> None:
    """Remove what was not finished."""
    shutil.rmtree(unfinished(folder), ignore_errors=True)


def complete(folder: Path, job: ModelJob, run: str, device_cores: int) -> None:
    """Add manifest, schedules and runner to the exported model, then show the bundle at its place."""
    place = unfinished(folder)
    try:
        (place / MANIFEST).write_text(json.dumps(manifest(job, run, device_cores), indent=2) + "\n")
        (place / SCHEDULES).write_text(json.dumps(schedules(job), indent=1) + "\n")
        shutil.copyfile(bundle_runner.__file__, place / RUNNER)
        with suppress(FileNotFoundError):
            folder.rmdir()
        place.rename(folder.absolute())
    except OSError as error:
        discard(folder)
        raise OutputError(
            f"can't write {folder}: {error.strerror}; choose another place with --out"
        ) from error


def manifest(job: ModelJob, run: str, device_cores: int) -> dict[str, Any]:
    """What the bundle says about itself; `device_cores` is how many cores it was measured on."""
    assert job.summary is not None
    spec, result = job.spec, job_result(job)
    return {
        "format": FORMAT,
        "name": job.summary.name,
        **interface(job),
        "target": job.summary.facts,
        "provenance": {
            "run": run,
            "model": spec.model,
            "model_digest": job.summary.digest,
            "device_key": spec.device_key,
            "device_cores": device_cores,
            "seed": spec.seed,
            "trials": result.get("trials"),
            "measuring_policy": spec.policy.tag,
            "tuneloom": __version__,
            "tvm": job.summary.tvm_version,
        },
        "measured": {k: v for k, v in result.items() if k.startswith("latenc") or k == "output_difference"},
        "kernels": result["kernels"],
    }
