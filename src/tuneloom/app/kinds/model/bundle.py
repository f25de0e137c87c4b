"""A bundle's last files: what it says about itself, its schedules, and the program that runs it."""

import json
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tuneloom import __version__
from tuneloom.app.bundles.folders import discard, show, unfinished
from tuneloom.app.finishing.finish import Finish
from tuneloom.app.kinds.model.results import interface, schedules
from tuneloom.app.tuning.task_tuning import TaskTuning
from tuneloom.errors import OutputError
from tuneloom.model import JobSpec, ModelSummary
from tuneloom.tuners.tvm import runner
from tuneloom.tuners.tvm.bundles.loading import FORMAT, MANIFEST, RUNNER, SCHEDULES

_MEASURED = ("output_difference", "own_runtime", "left_to_onnxruntime", "not_left_to_onnxruntime")


@dataclass(frozen=True, slots=True, kw_only=True)
class BundleParts:
    """What a bundle is described from; `device_cores` is how many cores it was measured on."""

    run: str
    spec: JobSpec
    summary: ModelSummary
    result: Mapping[str, Any]
    tuning: TaskTuning
    finish: Finish
    device_cores: int


def complete(folder: Path, parts: BundleParts) -> None:
    """Add manifest, schedules and runner to the exported model, then show the bundle at its place."""
    place = unfinished(folder)
    used = schedules(parts.tuning, parts.finish)
    try:
        (place / MANIFEST).write_text(json.dumps(manifest(parts), indent=2) + "\n")
        (place / SCHEDULES).write_text(json.dumps(used, indent=1) + "\n")
        shutil.copyfile(runner.__file__, place / RUNNER)
        show(place, folder.absolute())
    except OSError as error:
        discard(folder)
        raise OutputError(
            f"can't write {folder}: {error.strerror}; choose another place with --out"
        ) from error


def manifest(parts: BundleParts) -> dict[str, Any]:
    """What the bundle says about itself."""
    spec, summary, result = parts.spec, parts.summary, parts.result
    return {
        "format": FORMAT,
        "name": spec.name,
        **interface(summary),
        **_variants(parts),
        **({"state": list(map(dict, summary.state))} if summary.state else {}),
        "target": dict(summary.facts),
        "provenance": {
            "run": parts.run,
            "model": spec.model,
            "model_digest": summary.digest,
            "device_key": spec.device_key,
            "device_cores": parts.device_cores,
            "dtype": spec.dtype,
            "seed": spec.seed,
            "trials": result.get("trials"),
            "measuring_policy": spec.measuring.tag,
            "tuneloom": __version__,
            "tvm": summary.tvm_version,
        },
        "measured": {k: v for k, v in result.items() if k.startswith("latenc") or k in _MEASURED},
        "onnxruntime": result.get("onnxruntime", []),
        "implementers": list(parts.finish.exported.implementers),
        "requires": list(map(dict, parts.finish.exported.requires)),
        "kernels": result["kernels"],
    }


def _variants(parts: BundleParts) -> dict[str, Any]:
    """Further sets of shapes, and whether smaller inputs are padded; nothing for a bundle with one set."""
    variants, handover = parts.summary.variants, parts.finish.handover
    foreign = [one.foreign for one in variants] if handover is None else handover.foreign[1:]
    further = [
        {**interface(variant), "onnxruntime": list(map(dict, own))}
        for variant, own in zip(variants, foreign, strict=True)
    ]
    return ({"shapes": further} if further else {}) | ({"pad": True} if parts.spec.pad else {})
