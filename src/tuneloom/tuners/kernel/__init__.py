"""Kernels with knobs: spaces, searches that learn what fails, builders and runners."""

from tuneloom.model.fields import NATURAL, YES_OR_NO, JobField, one_of

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

DEFAULT_TRIALS = 200
"""How many trials a kernel gets unless something else is said."""

SEARCHES = ("guided", "autotvm", "local", "random")
"""The searches that can be named, the default first."""

STARTS = ("validity", "random", "default")
"""Where a search may start, the default first."""

KERNEL_FIELDS = (
    JobField(
        name="search",
        kind=one_of(SEARCHES),
        help="search method",
        otherwise=SEARCHES[0],
        option="--search",
        remote=False,
    ),
    JobField(
        name="init",
        kind=one_of(STARTS),
        help="how the first points are chosen",
        otherwise=STARTS[0],
        option="--init",
        remote=False,
    ),
    JobField(
        name="presample",
        kind=YES_OR_NO,
        help="build points near valid ones before running any",
        option="--presample",
        remote=False,
    ),
    JobField(
        name="spare",
        kind=NATURAL,
        help="build this many more candidates per round than are run",
        otherwise="0",
        option="--spare",
        metavar="N",
        remote=False,
    ),
)
"""What may be said of kernel jobs alone; the section [tuning] of a kernel's file says it too."""
