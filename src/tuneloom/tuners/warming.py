"""What the parent of all workers does before it forks the first, when jobs of several kinds may come."""

import importlib
import os

WARM_UPS = "TUNELOOM_WARM_UPS"
"""The variable that names functions to call, as `package.module:function`, separated by commas."""

TUNERS = "TUNELOOM_WARM_TUNERS"
"""The variable that names tuners to load, separated by commas."""


def warm_up() -> None:
    """Call every function that is named."""
    for name in _named(WARM_UPS):
        module, _, function = name.partition(":")
        getattr(importlib.import_module(module), function)()


def warm_tuners() -> None:
    """Load the tuners that jobs will ask for, so that every fork finds them imported."""
    from tuneloom.tuners.stages import tuner_named

    for name in _named(TUNERS):
        tuner_named(name)


def _named(variable: str) -> list[str]:
    return [name for name in os.environ.get(variable, "").split(",") if name]
