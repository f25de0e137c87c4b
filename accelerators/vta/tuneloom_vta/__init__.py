"""The VTA accelerator: a simulator, schedules for convolutions and products, and their knobs."""

from tuneloom_vta.configuration import DEFAULT, SMALL, Configuration
from tuneloom_vta.errors import ConfigurationError, EncodingError, ScheduleError, VtaError

__all__ = [
    "DEFAULT",
    "SMALL",
    "Configuration",
    "ConfigurationError",
    "EncodingError",
    "ScheduleError",
    "VtaError",
]
