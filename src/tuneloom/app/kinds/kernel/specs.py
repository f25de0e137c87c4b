"""Jobs that tune kernels with knobs: what their files and the command line say together."""

import tomllib
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from tuneloom.errors import InputError, SpaceError
from tuneloom.model import Budget, JobSpec, MeasuringRules
from tuneloom.model.fields import COUNT, NATURAL
from tuneloom.tuners.kernel import DEFAULT_TRIALS, DESCRIPTION, KERNEL_FIELDS, SEARCHES, STARTS
from tuneloom.tuners.kernel import NAME as KERNEL

_SEARCH = tuple(field.name for field in KERNEL_FIELDS)
_LIMITS = ("seconds", "goal_ms")
_TIMEOUTS = ("build_timeout_s", "run_timeout_s")


def kernel_spec(name: str, model: str, device: str, values: Mapping[str, Any]) -> JobSpec:
    """A job for one kernel from flat values; raises InputError for values that make no sense.

    Values that are None count as not given.
    """
    given = {key: value for key, value in values.items() if value is not None}
    trials = given.get("trials", DEFAULT_TRIALS)
    COUNT.require("trials", trials)
    return JobSpec(
        name=name,
        model=model,
        tuner=KERNEL,
        target=device,
        device_key=device,
        budget=Budget(
            trials=trials,
            **{key: float(given[key]) for key in _LIMITS if key in given},
        ),
        measuring=_rules(given),
        batch=1,
        seed=given.get("seed", 0),
        reuse="off",
        extra=search_options(given),
    )


def _rules(given: Mapping[str, Any]) -> MeasuringRules:
    timeouts: dict[str, Any] = {key: float(given[key]) for key in _TIMEOUTS if key in given}
    return MeasuringRules(**timeouts)


def described_spec(path: Path, values: Mapping[str, Any]) -> JobSpec:
    """A job for the kernel of a file; what `values` leave out, the file says, or else the defaults."""
    from tuneloom.tuners.kernel.description import described

    description = described(path)
    told = {**description.tuning, **{key: value for key, value in values.items() if value is not None}}
    kernel = description.kernel
    return kernel_spec(kernel.name, str(path.absolute()), told.get("device") or kernel.device_key, told)


def as_described(spec: JobSpec, values: Mapping[str, Any]) -> JobSpec:
    """A job of a jobs file with what only its kernel's file can say: the search and the device."""
    path = Path(spec.model)
    if not path.is_file():
        return spec  # whoever submits the job is told
    own = described_spec(path, {name: values.get(name) for name in ("device", *_SEARCH)})
    return replace(spec, device_key=own.device_key, target=own.target, batch=1, reuse="off", extra=own.extra)


def search_options(given: Mapping[str, Any]) -> dict[str, str]:
    """What a kernel's search is told, as text; raises InputError for what it does not know."""
    spare = given.get("spare", 0)
    NATURAL.require("spare", spare)
    search, init = given.get("search", SEARCHES[0]), given.get("init", STARTS[0])
    if search not in SEARCHES:
        raise InputError(f"no search {search!r}; known: {', '.join(SEARCHES)}")
    if init not in STARTS:
        raise InputError(f"no start {init!r}; known: {', '.join(STARTS)}")
    presample = "yes" if given.get("presample") else "no"
    return {"search": search, "init": init, "spare": str(spare), "presample": presample}


def require_kernel(spec: JobSpec) -> None:
    """Raise InputError if a kernel job is bound to fail."""
    path = Path(spec.model)
    if not path.is_file():
        raise SpaceError(f"no kernel at {spec.model}; give a TOML file that describes one")
    if spec.out is not None:
        raise InputError(f"{spec.name}: a kernel has no bundle; omit --out")
    if path.suffix == DESCRIPTION:
        from tuneloom.tuners.kernel.description import described

        described(path)


def kernel_files(path: Path) -> list[Path]:
    """A kernel's own file, and the sources that it names."""
    if path.suffix != DESCRIPTION or not path.is_file():
        return [path] if path.is_file() else []
    head = tomllib.loads(path.read_text(encoding="utf-8")).get("kernel", {})
    named = (str(head.get("source", "")), str(head.get("reference", "")).rpartition(":")[0])
    others = dict.fromkeys(path.parent / name for name in named if name)
    return [path, *(other for other in others if other.is_file())]
