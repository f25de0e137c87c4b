"""What the page of a grid shows, as plain values. Seconds throughout."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from statistics import mean, stdev

from tuneloom.report.drawing.units import clipped


@dataclass(frozen=True, slots=True, kw_only=True)
class GridRun:
    """One run of a grid; figures of runs that did not finish are None."""

    values: Mapping[str, str]
    seed: str
    status: str
    message: str = ""
    tuning_s: float | None = None
    before_s: float | None = None
    after_s: float | None = None
    speed_up: float | None = None
    trials: int = 0
    failed: int = 0
    stage_s: Mapping[str, float] = field(default_factory=dict)

    @property
    def finished(self) -> bool:
        return self.status == "finished"


@dataclass(frozen=True, slots=True, kw_only=True)
class GridGroup:
    """Runs that differ by nothing but their seed."""

    values: Mapping[str, str]
    runs: tuple[GridRun, ...]

    @property
    def finished(self) -> tuple[GridRun, ...]:
        return tuple(run for run in self.runs if run.finished)

    def label(self, length: int = 36) -> str:
        """What tells this group from others, cut to fit."""
        return clipped(" · ".join(self.values.values()) or "all runs", length)

    def told(self) -> str:
        """All its parameters, one a line."""
        return "\n".join(f"{name}: {value}" for name, value in self.values.items())

    def stage_means_s(self) -> dict[str, float]:
        """What each stage took, on average over finished runs."""
        runs = self.finished
        kinds = dict.fromkeys(kind for run in runs for kind in run.stage_s)
        return {kind: mean(run.stage_s.get(kind, 0.0) for run in runs) for kind in kinds}


@dataclass(frozen=True, slots=True, kw_only=True)
class GridData:
    """A whole grid: its name, what is the same for all runs, and its groups."""

    name: str
    fixed: Mapping[str, str]
    groups: tuple[GridGroup, ...]

    @property
    def runs(self) -> tuple[GridRun, ...]:
        return tuple(run for group in self.groups for run in group.runs)


def mean_and_spread(values: list[float]) -> tuple[float | None, float | None]:
    """The mean, and the standard deviation where there are two or more."""
    if not values:
        return None, None
    return mean(values), stdev(values) if len(values) > 1 else None
