"""What can go wrong before a program runs; what goes wrong while it runs is a value."""

from tuneloom.errors import InputError


class VtaError(InputError):
    """Root of the errors of this package."""


class ConfigurationError(VtaError):
    """Sizes of an accelerator that contradict each other."""


class EncodingError(VtaError):
    """A number that does not fit into its field of an instruction."""


class ScheduleError(VtaError):
    """A schedule for which no program exists."""


class CompilerError(VtaError):
    """The simulator could not be compiled."""
