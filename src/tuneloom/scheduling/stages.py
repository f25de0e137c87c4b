"""What the core knows of a stage: who it belongs to, what it needs, what comes after it."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class SlotDemand:
    """Slots of a host; of one named host if the stage's state lives there.

    `lendable` stages are short enough to run on the idle cores of a device.
    """

    slots: int = 1
    host: str | None = None
    lendable: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceDemand:
    """Any one device of this key, alone."""

    key: str


Demand = SlotDemand | DeviceDemand


@dataclass(frozen=True, slots=True, kw_only=True)
class StageRequest:
    """One stage, or one candidate's part of it, ready to start.

    A lane is a chain of dependent stages (a batch of a task). Requests of a lane with
    the same `step` are parts of one stage; the stage is done when all of them are.
    `kind` is a label under which durations are learned; the core gives it no meaning.
    `then` is what the lane will need next. `expected_s` is a prior, used until the
    core has seen stages of this job, task and kind itself.
    """

    id: str
    job: str
    lane: str
    step: int
    kind: str
    needs: Demand
    then: Demand | None = None
    expected_s: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Grant:
    """What a started stage holds: slots of a host, or a device (alone, `slots` is 1)."""

    resource: str
    slots: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class JobTicket:
    """What the core knows of a job.

    Higher `priority` goes first; equal ones share fairly by `weight`. A job whose
    device keys no resource has is refused unless `waits_for_devices`.
    """

    id: str
    priority: int = 0
    weight: float = 1.0
    deadline_s: float | None = None
    device_keys: frozenset[str] = frozenset()
    waits_for_devices: bool = False
