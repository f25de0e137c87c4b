"""What answers about models, the bank and devices look like."""

from typing import Any, Literal

from pydantic import BaseModel


class ModelTold(BaseModel):
    """An uploaded model. `summary` has its inputs, or the reason why it was refused."""

    digest: str
    name: str
    size_bytes: int
    created: float
    state: Literal["checking", "ready", "refused"]
    summary: dict[str, Any]


class ModelPage(BaseModel):
    """A page of models, newest first; pass `next` as `before` to get the following page."""

    models: list[ModelTold]
    next: int | None


class BankRowTold(BaseModel):
    """Records of one kernel class on one target family."""

    kernel_class: str
    family: str
    workloads: int
    measured: int
    failed: int


class BankTold(BaseModel):
    """What is known."""

    rows: list[BankRowTold]


class KernelTold(BaseModel):
    """The best time of one kernel on one kind of device."""

    key: str
    name: str
    kernel_class: str
    shapes: str
    gflop: float
    family: str
    device_key: str
    best_ms: float
    measured: int


class KernelPage(BaseModel):
    """A page of kernels, ordered by key; pass `next` as `after` to get the following page."""

    kernels: list[KernelTold]
    next: str | None


class DeviceTold(BaseModel):
    """A resource of a live executor, idle or not."""

    executor: str
    name: str
    key: str | None
    slots: int
    taken: int
    utilisation: float
    queue: int
    now: str


class DevicesTold(BaseModel):
    """All resources."""

    devices: list[DeviceTold]


class AbsenceTold(BaseModel):
    """A time without a device; `until` is null while it has not returned."""

    name: str
    since: float
    until: float | None
    reason: str


class DeviceHistoryTold(BaseModel):
    """What recent jobs noted about the devices with one key; times are seconds since the epoch."""

    key: str
    names: list[str]
    last_seen: float
    canary: list[list[float]]
    absences: list[AbsenceTold]


class DeviceHistoriesTold(BaseModel):
    """Devices over time."""

    devices: list[DeviceHistoryTold]
