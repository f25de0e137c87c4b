"""Grids: lists of parameters of which every combination is run."""

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from math import prod
from pathlib import Path
from typing import Any

from tuneloom.app.requests.schema import shown
from tuneloom.app.requests.sources import located
from tuneloom.app.requests.toml import TomlFile
from tuneloom.errors import JobsFileError
from tuneloom.model.fields import COUNT, POSITIVE, SHAPES, TEXT, YES_OR_NO, FieldType, PathKind, Words, one_of
from tuneloom.model.job import JOB_FIELDS
from tuneloom.scheduling import POLICIES

SEEDS = "seed"
MODELS = "models"
FARM = "farm"


def _is_models(value: Any) -> bool:
    several = value if isinstance(value, list) else [value]
    return bool(several) and all(isinstance(model, str) and model for model in several)


PARAMETERS: Mapping[str, FieldType] = {
    MODELS: Words(words="a model, or a list of models that are tuned in one run", fits=_is_models),
    "policy": one_of(tuple(POLICIES)),
    **{
        field.option.removeprefix("--").replace("-", "_"): field.kind
        for field in JOB_FIELDS
        if field.option and field.shared and field.kind is not SHAPES
    },
    FARM: TEXT,
    "device_cores": COUNT,
}
"""What can be varied; but for the models, options of `tuneloom tune` under their own names."""


@dataclass(frozen=True, slots=True)
class Combination:
    """One run to make: a value for every parameter."""

    parameters: Mapping[str, Any]

    @property
    def id(self) -> str:
        """The same for the same parameters in any order, so that finished runs are found again."""
        text = json.dumps(self.parameters, sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()[:12]

    @property
    def models(self) -> list[str]:
        models = self.parameters[MODELS]
        return models if isinstance(models, list) else [models]

    def arguments(self, folder: Path) -> list[str]:
        """What `tuneloom tune` is called with; paths count from `folder`."""
        words = [located(model, folder) for model in self.models]
        for name, value in self.parameters.items():
            option, kind = f"--{name.replace('_', '-')}", PARAMETERS[name]
            if name == FARM or isinstance(kind, PathKind):
                words += [option, str(folder.joinpath(value).absolute())]
            elif kind is YES_OR_NO:
                words += [option] if value else []
            elif name != MODELS:
                words += [option, str(value)]
        return words


@dataclass(frozen=True, slots=True, kw_only=True)
class Grid:
    """A grid file: what is fixed, what is varied, and after how long a run is given up."""

    path: Path
    fixed: Mapping[str, Any]
    varied: Mapping[str, Sequence[Any]]
    limit_s: float | None = None

    @property
    def count(self) -> int:
        """How many combinations there are."""
        return prod(len(values) for values in self.varied.values())

    @property
    def names(self) -> list[str]:
        """All parameters, varied ones first."""
        return [*self.varied, *self.fixed]

    def combinations(self) -> Iterator[Combination]:
        """All of them, the last list of the file varying fastest."""
        for values in product(*self.varied.values()):
            yield Combination({**dict(zip(self.varied, values, strict=True)), **self.fixed})


def read_grid(path: Path) -> Grid:
    """Raises JobsFileError with file and line for what makes no sense."""
    file = TomlFile.read(path)
    file.require_known(file.data, ("limit_s", "fixed", "grid"))
    if "limit_s" in file.data:
        file.require(POSITIVE, file.data["limit_s"], "limit_s", "limit_s")
    fixed, varied = _fixed(file), _varied(file)
    if MODELS not in fixed and MODELS not in varied:
        raise file.wrong('no models; list them in [grid], as in models = ["zoo:squeezenet"]', "grid")
    return Grid(path=path, fixed=fixed, varied=varied, limit_s=file.data.get("limit_s"))


def _fixed(file: TomlFile) -> dict[str, Any]:
    table = file.require_table(file.data.get("fixed", {}), "'fixed'", "fixed")
    file.require_values(table, PARAMETERS, "fixed")
    return table


def _varied(file: TomlFile) -> dict[str, list[Any]]:
    table = file.require_table(file.data.get("grid", {}), "'grid'", "grid")
    if not table:
        raise file.wrong("nothing to vary; give lists of parameters in [grid]", "grid")
    file.require_known(table, PARAMETERS, "grid")
    for name, values in table.items():
        _require_list(file, name, values)
    return table


def _require_list(file: TomlFile, name: str, values: Any) -> None:
    place = ("grid", name)
    if not isinstance(values, list):
        raise file.wrong(f"{name!r} must be a list in [grid], got {shown(values)}; see [fixed]", *place)
    if not values:
        raise file.wrong(f"the list {name!r} is empty, so there would be no combinations", *place)
    for value in values:
        file.require(PARAMETERS[name], value, name, *place)
    for number, value in enumerate(values):
        if value in values[:number]:
            raise file.wrong(f"the list {name!r} has {shown(value)} twice", *place)
    if name in file.data.get("fixed", {}):
        raise _twice(file, name)


def _twice(file: TomlFile, name: str) -> JobsFileError:
    line = file.lines.of("fixed", name)
    return file.wrong(f"{name!r} is already fixed in line {line}; give it in one place only", "grid", name)
