"""Our side of a row: what a bundle takes and computes, and how its tuning went."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np

from gpu.networks import Row
from gpu.turns import all_ready, held
from tuneloom.gpus import Nvml, visible_gpus
from tuneloom.store import Store, TrialRecord, open_existing
from tuneloom.tuners.tvm.bundles.loading import load_bundle
from tuneloom.tuners.tvm.models.compiling.differences import relative_difference

MINUTE_S = 60.0
WARM_UPS, LEAST_RUNS, MOST_RUNS, SECONDS = 10, 50, 500, 1.0


def measure(row: Row, folder: Path, group: int) -> dict[str, Any]:
    """Times of single runs of a bundle, each waited for, and how far its outputs are from float32.

    So many rows are loaded side by side, and then timed one by one.
    """
    bundle = load_bundle(folder / f"{row.file}.bundle")
    with np.load(folder / f"{row.file}.npz") as stored:
        inputs = [stored[f"input{n}"].astype(_numpy_type(info.dtype)) for n, info in enumerate(bundle.inputs)]
        expected = [stored[f"output{n}"] for n in range(len(bundle.outputs))]
    got = [np.asarray(value).astype(np.float32) for value in bundle.run(*inputs)]
    timer = bundle.model.timer(inputs)
    all_ready(folder, row.file, "measure", group)
    with held(folder):
        ordered = sorted(timed(timer))
        now = state()
    implementers = [kernel.get("implementer") for kernel in bundle.manifest.get("kernels", {}).values()]
    return {
        "ours_s": ordered[len(ordered) // 2],
        "ours_low_s": ordered[len(ordered) // 10],
        "ours_high_s": ordered[9 * len(ordered) // 10],
        "difference": max(map(relative_difference, got, expected)),
        "kernels_by": {str(name): implementers.count(name) for name in dict.fromkeys(implementers)},
        "state": now,
    }


def timed(timer: Callable[[], float]) -> list[float]:
    """Seconds of single runs."""
    for _ in range(WARM_UPS):
        timer()
    times: list[float] = []
    while len(times) < LEAST_RUNS or (sum(times) < SECONDS and len(times) < MOST_RUNS):
        times.append(timer())
    return times


def state() -> dict[str, Any]:
    """Which GPU it is and how it stands."""
    gpu = visible_gpus()[0]
    now = Nvml().state(gpu.uuid)
    return {
        "gpu": gpu.name,
        "core_mhz": now.core_mhz,
        "temperature_c": now.temperature_c,
        "power_w": now.power_w,
        "slowed_by": now.slowed_by,
    }


def tuning(place: str, started: float, name: str | None = None) -> dict[str, Any]:
    """How the last run of a store went, or its job of a name; `started` is when its command was given."""
    with closing(open_existing(place)) as store:
        run = store.runs(1)[0]
        job = next(job for job in store.jobs(run.id) if name in (None, job.name))
        records = store.trials(job.id)
        found = {
            "trials": len(records),
            "failed": sum(record.seconds is None for record in records),
            "untuned_s": job.result.get("latency_before_s"),
            "notes": list(job.result.get("notes", ())),
            "layout": job.result.get("layout", {}).get("layout"),
        }
        if not records:
            return found
        weights = {planned.task.key: planned.task.weight for planned in store.tasks(job.id)}
        return found | _pace(store, run.id, records) | after_a_minute(job.result, weights, records, started)


def _pace(store: Store, run: str, records: Sequence[TrialRecord]) -> dict[str, Any]:
    """Trials a minute from the first to the last, and how busy the GPU was meanwhile.

    It is busy while a stage of any job holds it: some end while others are tuned.
    """
    key = records[0].provenance.device_key
    names = {each["name"] for each in store.notes(run).get("resources", ()) if each.get("device_key") == key}
    every = store.spans(run)
    spans = [span for span in every if span.kind in ("select", "build", "profile", "update")]
    if not any(span.kind == "profile" for span in spans):
        return {}
    begin_s, end_s = min(span.start_s for span in spans), max(span.end_s for span in spans)
    took_s = end_s - begin_s
    held = [span for span in every if span.resource in names and begin_s <= span.start_s < end_s]
    measured_s = covered((span.start_s, min(span.end_s, end_s)) for span in held)
    waiting_s = covered(
        (span.start_s if span.ready_s is None else span.ready_s, min(span.end_s, end_s)) for span in held
    )
    return {
        "trials_a_minute": 60 * len(records) / took_s,
        "gpu_busy": measured_s / waiting_s,
        "gpu_busy_of_all": measured_s / took_s,
    }


def covered(spans: Iterable[tuple[float, float]]) -> float:
    """How long at least one of some spans lasted."""
    total = end = 0.0
    for start_s, end_s in sorted(spans):
        total += max(0.0, end_s - max(start_s, end))
        end = max(end, end_s)
    return total


def after_a_minute(
    result: Mapping[str, Any], weights: Mapping[str, int], records: Sequence[TrialRecord], started: float
) -> dict[str, Any]:
    """What all kernels together took with the best of the first minute, against the best of all."""
    before = {key: kernel.get("before_s") for key, kernel in result.get("kernels", {}).items()}

    def kernels_s(until: float) -> float:
        best: dict[str, float] = {key: seconds for key, seconds in before.items() if seconds}
        for record in records:
            if record.seconds is not None and record.created <= until:
                best[record.task_key] = min(record.seconds, best.get(record.task_key, record.seconds))
        return sum(weights[key] * seconds for key, seconds in best.items())

    early, late = kernels_s(started + MINUTE_S), kernels_s(float("inf"))
    return {"after_a_minute": early / late} if late else {}


def _numpy_type(name: str) -> Any:
    if name == "bfloat16":
        import ml_dtypes

        return ml_dtypes.bfloat16
    return np.dtype(name)
