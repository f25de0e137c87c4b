"""What came out of a model, as plain data for the store and people, and the last files of its bundle."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median
from typing import Any

from tuneloom import __version__
from tuneloom.app.bundles.folders import discard, show, unfinished
from tuneloom.app.finishing.finish import Finish
from tuneloom.app.tuning.task_tuning import TaskTuning
from tuneloom.errors import OutputError
from tuneloom.joining import run_py
from tuneloom.model import (
    Candidate,
    CheckResult,
    Handover,
    JobSpec,
    ModelSummary,
    OwnRuntime,
    ShapeVariant,
    VaryingSizes,
)
from tuneloom.model.space import implementer_of
from tuneloom.tuners.tvm.bundles.loading import FORMAT, MANIFEST, RUNNER, SCHEDULES
from tuneloom.tuners.tvm.models.sizes.choosing import Dimension, size_table


def check_result(check: CheckResult | None, handover: Handover | None = None) -> dict[str, Any]:
    """Latencies of the whole model before and after; nothing if it was never run."""
    if check is None:
        return {}
    after = check.tuned_s if handover is None else handover.seconds
    return {
        "latency_before_s": median(check.untuned_s),
        "latency_after_s": median(after),
        "latencies_before_s": list(check.untuned_s),
        "latencies_after_s": list(after),
        "output_difference": check.difference,
        **({} if check.energy_j is None or handover is not None else {"energy_j": check.energy_j}),
        **_own_runtime(check.own_runtime),
        **_by_shape(check),
        **_handover(handover),
    }


def rejected_handovers(rejected: Sequence[Handover]) -> dict[str, Any]:
    """What was not left to ONNX Runtime after it was tried, with the times that decided."""
    return {"not_left_to_onnxruntime": list(map(_handover_row, rejected))} if rejected else {}


def _handover(handover: Handover | None) -> dict[str, Any]:
    """What is left to ONNX Runtime because that is faster, with the times that decided."""
    return {} if handover is None else {"left_to_onnxruntime": _handover_row(handover)}


def _handover_row(handover: Handover) -> dict[str, Any]:
    return {
        "whole": handover.whole,
        "runtime": handover.runtime,
        "latency_s": median(handover.seconds),
        "tvm_s": median(handover.tvm_s),
        "onnxruntime_s": median(handover.rival_s),
        "output_difference": handover.difference,
    }


def _by_shape(check: CheckResult) -> dict[str, Any]:
    """What the model takes under each of several sets of shapes."""
    rows = [{"latency_before_s": before, "latency_after_s": after} for before, after in check.by_shape]
    return {"by_shape": rows} if rows else {}


def sizes_result(sizes: VaryingSizes | None) -> dict[str, Any]:
    """The sizes that a model was tuned for where one varies, in the order of `by_shape`."""
    return {} if sizes is None else {"sizes": list(sizes.programs)}


def _own_runtime(own: OwnRuntime | None) -> dict[str, Any]:
    """What the fastest other runtime takes; nothing where there was none to compare with."""
    if own is None:
        return {}
    found = {
        "name": own.name,
        "latency_s": median(own.seconds),
        "latencies_s": list(own.seconds),
        "tuned_s": median(own.tuned_s),
        "output_difference": own.difference,
        "others": {one.name: median(one.seconds) for one in own.others},
    }
    return {"own_runtime": found}


def foreign_parts(
    summary: ModelSummary, check: CheckResult | None, handover: Handover | None = None
) -> list[dict[str, Any]]:
    """The parts of a model that ONNX Runtime runs, with their share of its time once that is known."""
    shares = check.foreign_shares if check is not None else {}
    parts: Sequence[Mapping[str, Any]] = summary.foreign
    if handover is not None:
        shares, parts = handover.shares, handover.foreign[0]
    return [{**part, "share": shares.get(part["function"])} for part in parts]


def kernel_results(tuning: TaskTuning, finish: Finish) -> dict[str, Any]:
    """Per task key: what its kernel took before and after, and what was decided about it."""
    verdicts = {t.task.key: (finish.choices.verdicts[t.task.key], len(t.trials)) for t in tuning.tasks}
    used = finish.choices.schedules
    return {
        key: {**verdict.result(trials), "implementer": implementer_of(used.get(key, ""))}
        for key, (verdict, trials) in verdicts.items()
    }


def schedules(tuning: TaskTuning, finish: Finish) -> list[dict[str, Any]]:
    """The schedule used for each kernel and where it came from, for the bundle."""
    rows = []
    for progress in tuning.tasks:
        key = progress.task.key
        chosen, guess = finish.choices.verdicts[key].chosen, finish.choices.guesses.get(key)
        if chosen is not None or guess is not None:
            guessed = Candidate(key=key, configuration=guess or "", origin="guess")
            candidate = guessed if chosen is None else chosen.trial.candidate
            row = {"task": progress.task.key, "name": progress.task.name, "weight": progress.task.weight}
            row |= {"candidate": candidate.key, "origin": candidate.origin, "trace": candidate.configuration}
            row["implementer"] = implementer_of(candidate.configuration)
            rows.append(row)
    return rows


def interface(summary: ModelSummary | ShapeVariant) -> dict[str, Any]:
    """Names, shapes and types of a model's inputs and outputs."""
    return {
        "inputs": [asdict(info) for info in summary.inputs],
        "outputs": [asdict(info) for info in summary.outputs],
    }


_MEASURED = (
    "output_difference", "energy_j", "layout", "own_runtime", "left_to_onnxruntime", "not_left_to_onnxruntime"
)  # fmt: skip


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
        (place / RUNNER).write_text(run_py())
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
            **({"shapes": _given_ranges(spec)} if spec.ranges else {}),
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
    found = ({"shapes": further} if further else {}) | ({"pad": True} if parts.spec.pad else {})
    return found if parts.summary.sizes is None else found | {"sizes": _sizes(parts.summary.sizes, parts)}


def _sizes(sizes: VaryingSizes, parts: BundleParts) -> dict[str, Any]:
    """The dimension that varies: its programs with their times, and which of them run each size."""
    rows = parts.result.get("by_shape") or [{"latency_after_s": parts.result.get("latency_after_s")}]
    measured = [row["latency_after_s"] for row in rows]
    unmeasured = parts.finish.check is None
    seconds = list(map(float, sizes.programs)) if unmeasured else measured
    dimension = Dimension(low=sizes.low, high=sizes.high, pads=sizes.pads, splits=sizes.splits)
    table = size_table(dimension, dict(zip(sizes.programs, seconds, strict=True)))
    places = {size: place for place, size in enumerate(sizes.programs)}
    return {
        **asdict(sizes),
        "seconds": None if unmeasured else measured,
        "table": [[places[size] for size in runs] for runs in table],
    }


def _given_ranges(spec: JobSpec) -> dict[str, Any]:
    """The shapes as they were given, for a job that continues this one."""
    return {
        name: [f"{low}..{high}" if low < high else low for low, high in spec.ranges[name]]
        if name in spec.ranges
        else list(shape)
        for name, shape in spec.shapes.items()
    }
