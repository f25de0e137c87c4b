"""What answers about models, the bank and devices look like."""

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict

from tuneloom.app.hosting.seeing import SeenResource
from tuneloom.app.hosting.watching import DeviceHistory
from tuneloom.store import BankRow


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


class BankTold(BaseModel):
    """What is known."""

    rows: list[BankRow]


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


class DevicesTold(BaseModel):
    """All resources."""

    devices: list[SeenResource]


class DeviceHistoriesTold(BaseModel):
    """Devices over time."""

    model_config = ConfigDict(json_schema_serialization_defaults_required=True)
    devices: list[DeviceHistory]
