"""Jobs from a TOML file: a list of jobs and a table of what they have in common."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tuneloom.app.requests.job_specs import job_spec
from tuneloom.app.requests.schema import job_fields, kinds_of
from tuneloom.app.requests.sources import kind_of, located, numbered
from tuneloom.app.requests.toml import TomlFile
from tuneloom.errors import InputError
from tuneloom.model import JobSpec
from tuneloom.model.fields import PathKind


def read_jobs(path: Path, defaults: Mapping[str, Any] | None = None) -> list[JobSpec]:
    """The jobs of a file; `defaults` are used where neither a job nor the file's own say anything.

    Paths in the file count from its folder. Raises JobsFileError with file and line.
    """
    file = TomlFile.read(path)
    file.require_known(file.data, ("defaults", "jobs"))
    common = {**(defaults or {}), **_seen_from(path.parent, _defaults(file))}
    jobs = _jobs(file)
    names = _names(jobs, common.get("tuner"))
    return [
        _spec(file, number, {"name": name, **_located(job, path, common)}, common)
        for number, (job, name) in enumerate(zip(jobs, names, strict=True))
    ]


def _spec(file: TomlFile, number: int, values: Mapping[str, Any], common: Mapping[str, Any]) -> JobSpec:
    try:
        return job_spec(values, common)
    except InputError as error:
        own = (error.field,) if error.field and error.field in file.data["jobs"][number] else ()
        raise file.wrong(str(error), "jobs", number, *own) from error


def _names(jobs: list[dict[str, Any]], tuner: str | None) -> list[str]:
    """The names that jobs were given; others are called after their models."""
    given = [str(job["name"]) for job in jobs if "name" in job]
    nameless = [job for job in jobs if "name" not in job]
    wanted = [kind_of(job["model"], job.get("tuner", tuner)).named(job["model"]) for job in nameless]
    invented = iter(numbered(wanted, given))
    return [str(job["name"]) if "name" in job else next(invented) for job in jobs]


def _defaults(file: TomlFile) -> dict[str, Any]:
    table = file.require_table(file.data.get("defaults", {}), "'defaults'", "defaults")
    file.require_values(table, kinds_of(field for field in job_fields() if field.shared), "defaults")
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
    file.require_values(table, kinds_of(job_fields()), "jobs", number)
    if "model" not in table:
        raise file.wrong("this job has no model; give a file or zoo:NAME", "jobs", number)


def _located(job: Mapping[str, Any], path: Path, common: Mapping[str, Any]) -> dict[str, Any]:
    """A job whose model and other paths are seen from anywhere."""
    model = located(job["model"], path.parent, job.get("tuner", common.get("tuner")))
    return {**_seen_from(path.parent, job), "model": model}


def _seen_from(folder: Path, values: Mapping[str, Any]) -> dict[str, Any]:
    """The values with paths that count from a folder made absolute."""
    paths = [field.name for field in job_fields() if isinstance(field.kind, PathKind)]
    places = {name: str(folder.joinpath(values[name]).absolute()) for name in paths if values.get(name)}
    return {**values, **places}
