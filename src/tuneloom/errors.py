"""Every error Tuneloom raises on purpose.

TuneloomError
├── InputError            what the user gave is wrong; the CLI exits with 2
│   ├── ModelError        a model file or graph
│   ├── TargetError       a target or device key
│   ├── BudgetError       trials, seconds or a goal
│   ├── SpaceError        knobs or restrictions of a kernel space
│   ├── JobsFileError     a jobs, grid or farm file, with its line
│   ├── FarmError         a machine or device of a farm that can't be used
│   ├── InvalidArgument   arrays that an InferenceSession can't take, in ONNX Runtime's words
│   ├── RecordsError      a foreign database or cache file
│   ├── OutputError       the place where results should go
│   ├── ConflictError     what is there already stands against it
│   └── QuotaError        a tenant has used what it may
├── OrderError            a method called before the one it needs
├── SchedulingError       an event the scheduling core can't accept
├── PolicyError           a scheduling policy granted what it may not
├── EngineError           workers can't be started or reached
├── StoreError            the store can't be opened, read or written; the CLI exits with 2
│   └── LeaseLost         another executor has taken the run over
├── ServiceError          a server can't be reached, refuses the token, or breaks; the CLI exits with 2
├── NothingMeasured       a job ended without one valid trial; the CLI exits with 1
└── BundleError           a bundle that can't be loaded or run here
"""

import re

_FAILED_CHECK = re.compile(r"Check failed: .*? is false(: |$)")
_OWN_KIND = re.compile(r"^tuneloom\.errors\.\w+: ")
_LONGEST = 200


class TuneloomError(Exception):
    """Root of the tree; its text names the thing and says the remedy."""

    exit_code = 1


class InputError(TuneloomError):
    """What the user gave is wrong; `field` names the part of a job that is, where one is."""

    exit_code = 2

    def __init__(self, message: str = "", *, field: str | None = None) -> None:
        super().__init__(message)
        self.field = field


class ModelError(InputError):
    """A model file or graph can't be used."""


class TargetError(InputError):
    """A target or device key is unknown or can't be used here."""


class BudgetError(InputError):
    """A budget makes no sense."""


class SpaceError(InputError):
    """A knob space or one of its restrictions is wrong."""


class JobsFileError(InputError):
    """A jobs, grid or farm file is wrong at some line."""


class FarmError(InputError):
    """A machine or device of a farm can't be reached, is not what was said, or is not safe to use."""


class InvalidArgument(InputError):  # noqa: N818 - ONNX Runtime's name for it
    """Arrays that don't fit the inputs of a model, in ONNX Runtime's words."""


class RecordsError(InputError):
    """A foreign database or cache file can't be read."""


class OutputError(InputError):
    """The place where results should go can't be used."""


class ConflictError(InputError):
    """What is there already stands against what is asked for."""


class QuotaError(InputError):
    """A tenant has used as much as it may."""


class OrderError(TuneloomError):
    """A method was called before the one it needs."""


class SchedulingError(TuneloomError):
    """An event that the scheduling core can't accept."""


class PolicyError(TuneloomError):
    """A scheduling policy granted what is not there or not free: a bug in the policy."""


class EngineError(TuneloomError):
    """Workers can't be started or reached."""


class StoreError(TuneloomError):
    """The store can't be opened, read or written: its place, its disk or its address is wrong."""

    exit_code = 2


class LeaseLost(StoreError):  # noqa: N818 - the name is the message
    """Another executor has taken over the run that this one was carrying out."""

    def __init__(self, message: str = "", run: str = "") -> None:
        super().__init__(message, run)
        self.run = run

    def __str__(self) -> str:
        return str(self.args[0])


class ServiceError(TuneloomError):
    """A server can't be reached, does not accept the token, or breaks."""

    exit_code = 2


class NothingMeasured(TuneloomError):  # noqa: N818 - the name is the message
    """A job ended without one valid trial."""


class BundleError(TuneloomError):
    """A bundle that can't be loaded or run here."""

    exit_code = 2


def reason_of(error: BaseException) -> str:
    """The reason in another program's error, in one short line; the type of the error if it gives none."""
    return in_short(str(error)) or type(error).__name__


def in_short(text: str) -> str:
    """The last line with text, where compilers put the reason; cut short, without the check that failed
    or the name of an error of ours."""
    lines = [line.strip() for line in text.splitlines() if any(map(str.isalnum, line))]
    reason = _OWN_KIND.sub("", _FAILED_CHECK.sub("", lines[-1]).strip()) if lines else ""
    return reason if len(reason) <= _LONGEST else f"{reason[: _LONGEST - 2].rsplit(' ', 1)[0]} …"
