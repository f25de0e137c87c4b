"""What the core knows of a stage: who it belongs to, what it needs, what comes after it."""

from dataclasses import dataclass

from tuneloom.errors import SchedulingError


@dataclass(frozen=True, slots=True, kw_only=True)
class SlotDemand:
    """Slots of a host; of one named host if the stage can run on no other.

    `lendable` stages may run on the idle cores of a device instead.
    """

    slots: int = 1
    host: str | None = None
    lendable: bool = False

    def __post_init__(self) -> None:
        if self.slots < 1:
            raise SchedulingError(f"a stage needs at least 1 slot, got {self.slots}")


ANY_CORE = SlotDemand(lendable=True)
"""One slot of any host, or a device that has nothing to do."""


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
    core has seen stages of this job, task and kind itself; `task` says which task the
    lane belongs to (left empty: the lane's own name). `remaining_s` is how long the
    job expects its own chain of stages to take from here on, this one included.
    `home` names state of the job that this stage uses, such as a search: host stages with
    the same home run on the same host, and the first that starts decides which.
    """

    id: str
    job: str
    lane: str
    step: int
    kind: str
    needs: Demand
    then: Demand | None = None
    expected_s: float | None = None
    task: str = ""
    remaining_s: float | None = None
    home: str = ""

    def __post_init__(self) -> None:
        if self.home and isinstance(self.needs, SlotDemand) and self.needs.slots != 1:
            raise SchedulingError(
                f"stage {self.id!r} has a home and needs {self.needs.slots} slots; give it 1"
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class Grant:
    """What a started stage holds: slots of a host, or a device (alone, `slots` is 1).

    `shared` grants exist under the synchronous policy only: the resource may have
    other holders at the same time, on purpose.
    """

    resource: str
    slots: int = 1
    shared: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class JobTicket:
    """What the core knows of a job.

    Higher `priority` goes first; equal ones share fairly by `weight`. Jobs with the same `share` have
    one weight together; a job without one stands for itself. A job whose
    device keys no resource has is refused unless `waits_for_devices`.
    """

    id: str
    priority: int = 0
    weight: float = 1.0
    share: str = ""
    deadline_s: float | None = None
    device_keys: frozenset[str] = frozenset()
    waits_for_devices: bool = False

    def __post_init__(self) -> None:
        if not self.weight > 0:
            raise SchedulingError(f"job {self.id!r} needs a positive weight, got {self.weight}")
