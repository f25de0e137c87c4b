"""Kernels with knobs: spaces, searches that learn what fails, builders and runners."""

NAME = "kernel"
"""What the tuner of kernels is called."""

DESCRIPTION = ".toml"
"""How the name of a file ends that describes a kernel."""

FUNCTIONS = ".kernel"
"""How the name of a file ends that holds a kernel of Python functions."""

ON_DEVICE = "builds_on_device"
"""The fact that building a kernel needs its device."""

PRESAMPLED = "presampled"
"""The option of a search that says what building alone has shown: a JSON list of [knobs, builds]."""

SEARCHES = ("guided", "autotvm", "local", "random")
"""The searches that can be named, the default first."""

STARTS = ("validity", "random", "default")
"""Where a search may start, the default first."""
