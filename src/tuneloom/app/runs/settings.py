"""How runs are carried out, apart from their jobs."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tuneloom.app.farm.reading import FarmFile, read_farm
from tuneloom.model.fields import COUNT


@dataclass(frozen=True, slots=True, kw_only=True)
class RunSettings:
    """How a run works, apart from its jobs; `farm` is the path of a farm file.

    `insecure` accepts a cluster that runs code for anyone who can reach it.
    """

    policy: str = "load-aware"
    store: str | None = None
    device_cores: int = 1
    farm: str | None = None
    insecure: bool = False

    def __post_init__(self) -> None:
        COUNT.require("device_cores", self.device_cores)

    def read_farm(self) -> FarmFile | None:
        """The farm, if there is one; raises JobsFileError."""
        return read_farm(Path(self.farm)) if self.farm is not None else None

    def options(self) -> dict[str, Any]:
        """What a run remembers of them."""
        told: dict[str, Any] = {"policy": self.policy, "device_cores": self.device_cores}
        if self.farm is not None:
            told |= {"farm": str(Path(self.farm).absolute()), "insecure": self.insecure}
        return told

    @classmethod
    def of_run(cls, options: Mapping[str, Any], store: str | None) -> "RunSettings":
        """The settings that a run remembers."""
        farm = options.get("farm")
        return cls(
            policy=str(options.get("policy", "load-aware")),
            store=store,
            device_cores=int(options.get("device_cores", 1)),
            farm=str(farm) if farm else None,
            insecure=bool(options.get("insecure", False)),
        )
