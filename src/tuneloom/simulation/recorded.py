"""Stage times recorded from a real run.

The file has one JSON object a line, in the order in which the stages ended:

    {"job": "resnet18", "task": "conv2d_3", "kind": "profile", "seconds": 0.41}

`job`, `kind` and `seconds` are required. `task` names the lane within the job (default:
one lane). `device_key` names the device the stage held; a profile without one held a
device of key "device", everything else held `slots` slots of a host (default 1).
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tuneloom.errors import InputError
from tuneloom.model import StageKind
from tuneloom.scheduling.stages import Demand, DeviceDemand, JobTicket, SlotDemand
from tuneloom.simulation.steps import TimedStep

STREAMED = (StageKind.BUILD.value, StageKind.PROFILE.value)
KNOWN = ("job", "task", "kind", "seconds", "device_key", "slots")


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedStage:
    """One line of a recording."""

    job: str
    kind: str
    seconds: float
    task: str = ""
    device_key: str | None = None
    slots: int = 1

    @property
    def needs(self) -> Demand:
        """What the stage held."""
        if self.device_key is not None:
            return DeviceDemand(key=self.device_key)
        if self.kind == StageKind.PROFILE:
            return DeviceDemand(key="device")
        return SlotDemand(slots=self.slots)


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedJob:
    """A job that takes exactly the time it took once; its tasks are lanes."""

    name: str
    lane_steps: tuple[tuple[TimedStep, ...], ...]
    arrives_s: float = 0.0
    prior_factor: float | None = None

    @property
    def ticket(self) -> JobTicket:
        steps = [step for lane in self.lane_steps for step in lane]
        keys = frozenset(step.needs.key for step in steps if isinstance(step.needs, DeviceDemand))
        return JobTicket(id=self.name, device_keys=keys)

    def lanes(self) -> tuple[Sequence[TimedStep], ...]:
        return self.lane_steps


def load_recorded(path: Path) -> tuple[RecordedJob, ...]:
    """Read a recording; raises InputError with file and line for what can't be understood."""
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"can't read the recording {str(path)!r}: {error}") from error
    stages = [_parse(path, number, line) for number, line in enumerate(lines, 1) if line.strip()]
    if not stages:
        raise InputError(f"the recording {str(path)!r} has no stages; each line should be one JSON object")
    jobs: dict[str, dict[str, list[RecordedStage]]] = {}
    for stage in stages:
        jobs.setdefault(stage.job, {}).setdefault(stage.task, []).append(stage)
    return tuple(
        RecordedJob(name=name, lane_steps=tuple(_steps(lane) for lane in lanes.values()))
        for name, lanes in jobs.items()
    )


def _parse(path: Path, number: int, line: str) -> RecordedStage:
    place = f"{path}, line {number}"
    try:
        fields = json.loads(line)
    except ValueError as error:
        raise InputError(f"{place}: not JSON: {error}") from error
    if not isinstance(fields, dict):
        raise InputError(f"{place}: expected an object with job, kind and seconds")
    for name in fields:
        if name not in KNOWN:
            raise InputError(f"{place}: unknown key {name!r}; known: {', '.join(KNOWN)}")
    for name in ("job", "kind"):
        if not isinstance(fields.get(name), str):
            raise InputError(f"{place}: {name!r} must be text, got {fields.get(name)!r}")
    _require_number(place, "seconds", fields.get("seconds"), least=0.0)
    slots = fields.get("slots", 1)
    if not isinstance(slots, int) or isinstance(slots, bool) or slots < 1:
        raise InputError(f"{place}: 'slots' must be a whole number of at least 1, got {slots!r}")
    return RecordedStage(**fields)


def _require_number(place: str, name: str, value: object, *, least: float) -> None:
    good = isinstance(value, int | float) and not isinstance(value, bool) and least <= value < float("inf")
    if not good:
        raise InputError(f"{place}: {name!r} must be a number of at least {least:g}, got {value!r}")


def _steps(stages: list[RecordedStage]) -> tuple[TimedStep, ...]:
    """Put the parts of one stage together; builds and profiles may come mixed, as they were streamed."""
    rounds: list[dict[tuple[str, Demand], list[float]]] = [{}]
    for stage in stages:
        batch = rounds[-1]
        streams = stage.kind in STREAMED and all(kind in STREAMED for kind, _ in batch)
        if batch and not streams:
            rounds.append(batch := {})
        batch.setdefault((stage.kind, stage.needs), []).append(stage.seconds)
    return tuple(step for batch in rounds for step in _batch_steps(batch))


def _batch_steps(batch: dict[tuple[str, Demand], list[float]]) -> list[TimedStep]:
    ordered = sorted(batch.items(), key=lambda item: item[0][0] == StageKind.PROFILE)
    return [
        TimedStep(
            kind=kind, needs=needs, parts=tuple(parts), streamed=kind == StageKind.BUILD and len(parts) > 1
        )
        for (kind, needs), parts in ordered
    ]
