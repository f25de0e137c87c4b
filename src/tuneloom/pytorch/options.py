"""What users may say when they compile a PyTorch model."""

from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from tuneloom.app.requests.job_specs import job_spec
from tuneloom.app.requests.schema import nearest
from tuneloom.errors import InputError
from tuneloom.store import default_place

MODES = ("background", "wait")


@dataclass(frozen=True, slots=True, kw_only=True)
class CompileOptions:
    """Budget, target and places of one compiled model; `goal` is a latency in milliseconds."""

    trials: int | None = None
    seconds: float | None = None
    goal: float | None = None
    target: str | None = None
    store: str | None = None
    server: str | None = None
    dtype: str = "float32"
    mode: str = "background"

    def __post_init__(self) -> None:
        if self.mode not in MODES:
            raise InputError(f"unknown mode {self.mode!r}; known: {', '.join(MODES)}", field="mode")
        job_spec({"name": "graph", "model": "graph.pt2", **self.of_job()})

    @classmethod
    def of(cls, given: Mapping[str, Any] | None, mode: str | None = None) -> "CompileOptions":
        """The options of a dictionary; raises InputError naming the nearest option for an unknown one."""
        known = [field.name for field in fields(cls)]
        for name in given or {}:
            if name not in known:
                raise InputError(f"unknown option {name!r}; {nearest(name, known)}", field=name)
        return cls(**{**({} if mode is None else {"mode": mode}), **(given or {})})

    def of_job(self) -> dict[str, Any]:
        """What a job is told, under the names that jobs files use."""
        told = {"trials": self.trials, "seconds": self.seconds, "goal_ms": self.goal, "target": self.target}
        return {name: value for name, value in told.items() if value is not None} | {"dtype": self.dtype}

    @property
    def folder(self) -> Path:
        """Where compiled graphs are kept: beside the store."""
        local = self.store is not None and "://" not in self.store
        return (Path(str(self.store)).absolute() if local else default_place()).parent / "pytorch"
