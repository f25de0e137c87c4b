"""What users may say when they compile a PyTorch model."""

from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from tuneloom.errors import InputError

MODES = ("background", "wait")
JOB, REFUSED = "job.json", "refused.txt"
FIRST, TUNED = "untuned", "tuned"
"""Bundles in a graph's folder: with what is known from the start, and with what tuning found."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CompileOptions:
    """Budget, target and places of one compiled model.

    `goal` is a latency in milliseconds; without a `dtype`, PyTorch's settings say where TF32 may be used.
    """

    trials: int | None = None
    seconds: float | None = None
    goal: float | None = None
    target: str | None = None
    store: str | None = None
    server: str | None = None
    dtype: str | None = None
    mode: str = "background"

    def __post_init__(self) -> None:
        if self.mode not in MODES:
            raise InputError(f"unknown mode {self.mode!r}; known: {', '.join(MODES)}", field="mode")
        if self.of_job():
            from tuneloom.app.requests.job_specs import job_spec  # half a second that the first answer waits

            job_spec({"name": "graph", "model": "graph.pt2", **self.of_job()})

    @classmethod
    def of(cls, given: Mapping[str, Any] | None, mode: str | None = None) -> "CompileOptions":
        """The options of a dictionary; raises InputError naming the nearest option for an unknown one."""
        known = [field.name for field in fields(cls)]
        for name in given or {}:
            if name not in known:
                from tuneloom.app.requests.schema import nearest

                raise InputError(f"unknown option {name!r}; {nearest(name, known)}", field=name)
        return cls(**{**({} if mode is None else {"mode": mode}), **(given or {})})

    def of_job(self) -> dict[str, Any]:
        """What a job is told, under the names that jobs files use."""
        told = {"trials": self.trials, "seconds": self.seconds, "goal_ms": self.goal, "target": self.target}
        return {name: value for name, value in (told | {"dtype": self.dtype}).items() if value is not None}

    @property
    def folder(self) -> Path:
        """Where compiled graphs are kept: beside the store."""
        local = self.store is not None and "://" not in self.store
        if not local:
            from tuneloom.store import default_place

            return default_place().parent / "pytorch"
        return Path(str(self.store)).absolute().parent / "pytorch"
