"""Jobs from a TOML file: a list of jobs and a table of what they have in common."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tuneloom.app.kinds.kernel.specs import as_described
from tuneloom.app.requests.sources import device_for, job_names, located, tuner_of
from tuneloom.app.requests.toml_values import SHAPES, TEXT, YES_OR_NO, Kind, TomlFile, one_of
from tuneloom.model import Budget, JobSpec, MeasuringPolicy
from tuneloom.model.job import REUSE
from tuneloom.model.numbers import COUNT, NOT_NEGATIVE, POSITIVE, SEED, WHOLE, NumberKind
from tuneloom.tuners.kernel import NAME as KERNEL

SHARED: Mapping[str, Kind | NumberKind] = {
    "target": TEXT,
    "device": TEXT,
    "trials": COUNT,
    "seconds": POSITIVE,
    "goal_ms": POSITIVE,
    "priority": WHOLE,
    "deadline_s": POSITIVE,
    "arrival_s": NOT_NEGATIVE,
    "batch": COUNT,
    "seed": SEED,
    "shapes": SHAPES,
    "run_timeout_s": POSITIVE,
    "build_timeout_s": POSITIVE,
    "waits_for_devices": YES_OR_NO,
    "layout": TEXT,
    "reuse": one_of(REUSE),
}
"""What may stand in `[defaults]` and in a job."""

OWN: Mapping[str, Kind | NumberKind] = {"name": TEXT, "model": TEXT, "out": TEXT}
"""What only a job may say."""

JOB_KEYS: Mapping[str, Kind | NumberKind] = {**OWN, **SHARED}
_SPEC_KEYS = ("target", "shapes", "batch", "seed", "priority", "deadline_s", "arrival_s", "layout", "reuse")
DEFAULT_TRIALS = 1000


def read_jobs(path: Path, defaults: Mapping[str, Any] | None = None) -> list[JobSpec]:
    """The jobs of a file; `defaults` are used where neither a job nor the file's own say anything.

    Paths in the file count from its folder. Raises JobsFileError with file and line.
    """
    file = TomlFile.read(path)
    file.require_known(file.data, ("defaults", "jobs"))
    common = {**(defaults or {}), **_defaults(file)}
    jobs = _jobs(file)
    models = [job["model"] for job in jobs]
    given = [str(job["name"]) for job in jobs if "name" in job]
    invented = iter(job_names([job["model"] for job in jobs if "name" not in job], given))
    names = [str(job["name"]) if "name" in job else next(invented) for job in jobs]
    return [
        job_spec({**common, **job, "name": name, "model": located(model, path.parent)} | _place(job, path))
        for job, name, model in zip(jobs, names, models, strict=True)
    ]


def job_spec(values: Mapping[str, Any]) -> JobSpec:
    """A job from flat values, checked before, under the names that files use."""
    policy = {name: values[name] for name in ("run_timeout_s", "build_timeout_s") if name in values}
    spec = JobSpec(
        name=values["name"],
        model=values["model"],
        tuner=tuner_of(values["model"]),
        device_key=values.get("device") or device_for(values.get("target", "cpu")),
        budget=Budget(
            trials=values.get("trials", DEFAULT_TRIALS),
            seconds=values.get("seconds"),
            goal_ms=values.get("goal_ms"),
        ),
        policy=MeasuringPolicy(**policy),
        waits_for_devices=values.get("waits_for_devices", False),
        out=values.get("out"),
        **{name: _tuples(values[name]) for name in _SPEC_KEYS if name in values},
    )
    return as_described(spec, values) if spec.tuner == KERNEL else spec


def _defaults(file: TomlFile) -> dict[str, Any]:
    table = file.require_table(file.data.get("defaults", {}), "'defaults'", "defaults")
    file.require_known(table, SHARED, "defaults")
    for key, value in table.items():
        file.require(SHARED[key], value, key, "defaults", key)
    return table


def _jobs(file: TomlFile) -> list[dict[str, Any]]:
    jobs = file.data.get("jobs")
    if not isinstance(jobs, list) or not jobs:
        raise file.wrong("no jobs; begin each with [[jobs]] and give it a model", "jobs")
    for number, job in enumerate(jobs):
        _check(file, job, number)
    _require_different(file, jobs, "name", "two jobs are named")
    _require_different(file, jobs, "out", "two jobs write to")
    return jobs


def _require_different(file: TomlFile, jobs: list[dict[str, Any]], key: str, complaint: str) -> None:
    taken: dict[str, int] = {}
    for number, job in enumerate(jobs):
        if key in job and job[key] in taken:
            earlier = file.lines.of("jobs", taken[job[key]], key)
            raise file.wrong(f"{complaint} {job[key]!r}, see line {earlier}", "jobs", number, key)
        if key in job:
            taken[job[key]] = number


def _check(file: TomlFile, job: Any, number: int) -> None:
    table = file.require_table(job, "a job", "jobs", number)
    file.require_known(table, JOB_KEYS, "jobs", number)
    for key, value in table.items():
        file.require(JOB_KEYS[key], value, key, "jobs", number, key)
    if "model" not in table:
        raise file.wrong("this job has no model; give a file or zoo:NAME", "jobs", number)


def _place(job: Mapping[str, Any], path: Path) -> dict[str, str]:
    return {"out": str(path.parent.joinpath(job["out"]).absolute())} if "out" in job else {}


def _tuples(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: tuple(shape) for name, shape in value.items()}
    return value
