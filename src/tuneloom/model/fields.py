"""What may be said of a job: one value for each field, from which every way of saying it is made.

A field is declared once: beside the attribute that holds it (`job_field` in `JobSpec`, `Budget` and
`MeasuringRules`), or by a kind of job that brings it. Command line, jobs file, HTTP body, client options
and the table in the docs are made from it. Numbers that people give are always finite, always in a range.
"""

from collections.abc import Callable, Sequence
from dataclasses import MISSING, dataclass, field, fields, is_dataclass, replace
from functools import cache
from math import inf
from typing import Any

from tuneloom.errors import BudgetError, InputError
from tuneloom.model.sizes import range_in

_MOST_WHOLE = 2**31 - 1
_MOST = 1e9


@dataclass(frozen=True, slots=True, kw_only=True)
class NumberKind:
    """A range of numbers, whole ones only with `whole`; `words` say it to people.

    The upper limits are far beyond what makes sense, and what every database, clock and
    random generator can take.
    """

    words: str
    least: float
    most: float = _MOST
    whole: bool = False
    excludes_least: bool = False

    def fits(self, value: Any) -> bool:
        """Whether a value is such a number; true and false are none."""
        if not self._is_number(value):
            return False
        return bool(self.least < value <= self.most or (value == self.least and not self.excludes_least))

    def words_for(self, value: Any) -> str:
        """What a value that does not fit should have been."""
        if self._is_number(value) and self.most < value < inf:
            return f"at most {self.most:.10g}"
        return self.words

    def require(self, name: str, value: Any) -> None:
        """Raise BudgetError unless a value fits."""
        if not self.fits(value):
            raise BudgetError(f"{name} must be {self.words_for(value)}, got {value!r}")

    def _is_number(self, value: Any) -> bool:
        return isinstance(value, int if self.whole else int | float) and not isinstance(value, bool)


COUNT = NumberKind(words="a whole number of at least 1", least=1, most=_MOST_WHOLE, whole=True)
NATURAL = NumberKind(words="a whole number of at least 0", least=0, most=_MOST_WHOLE, whole=True)
SEED = NATURAL
WHOLE = NumberKind(words="a whole number", least=-_MOST_WHOLE, most=_MOST_WHOLE, whole=True)
BYTES = NumberKind(words="a whole number of at least 1", least=1, most=2**50, whole=True)
POSITIVE = NumberKind(words="a number above 0", least=0, excludes_least=True)
NOT_NEGATIVE = NumberKind(words="a number of at least 0", least=0)
RATIO = NumberKind(words="a number of at least 1", least=1)


_DECLARED = "job_field"
EXTRA = "extra"
"""The part of a job that holds the fields of its kind."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Words:
    """What a value has to be, in words and as a test."""

    words: str
    fits: Callable[[Any], bool]

    def words_for(self, _value: Any) -> str:
        """What a value that does not fit should have been."""
        return self.words


@dataclass(frozen=True, slots=True)
class Choice:
    """One of a few words."""

    names: tuple[str, ...]

    @property
    def words(self) -> str:
        return f"one of {', '.join(self.names)}"

    def fits(self, value: Any) -> bool:
        """Whether a value is one of them."""
        return value in self.names

    def words_for(self, _value: Any) -> str:
        """What a value that does not fit should have been."""
        return self.words

    def require(self, name: str, value: Any) -> None:
        """Raise InputError unless a value fits."""
        if not self.fits(value):
            raise InputError(f"unknown {name} {value!r}; known: {', '.join(self.names)}", field=name)


@dataclass(frozen=True, slots=True, kw_only=True)
class PathKind:
    """The path of a file with this ending, or of a folder; relative ones count from where they are written.

    Over HTTP a file is the digest of an upload.
    """

    ending: str = ""

    @property
    def words(self) -> str:
        return f"path of a {self.ending} file" if self.ending else "path of a folder"

    def fits(self, value: Any) -> bool:
        """Whether a value may be a path."""
        return _is_text(value)

    def words_for(self, _value: Any) -> str:
        """What a value that does not fit should have been."""
        return "text"


FieldType = Words | Choice | PathKind | NumberKind


def _is_shape(value: Any) -> bool:
    listed = isinstance(value, list | tuple) and bool(value)
    return listed and all(COUNT.fits(size) or range_in(size) is not None for size in value)


def is_shapes(value: Any) -> bool:
    """One shape, or a list of them; a size may be a range, as in `1..64`."""
    several = isinstance(value, list | tuple) and bool(value) and all(_is_shape(one) for one in value)
    return several or _is_shape(value)


def _is_text(value: Any) -> bool:
    return isinstance(value, str) and bool(value) and "\x00" not in value


TEXT = Words(words="text", fits=_is_text)
YES_OR_NO = Words(words="true or false", fits=lambda value: isinstance(value, bool))
SHAPES = Words(
    words='a table of lists, as in { input = [1, 3, 224, 224] } or { input = ["1..64", 3, 224, 224] }',
    fits=lambda value: isinstance(value, dict) and all(is_shapes(shape) for shape in value.values()),
)


def one_of(names: Sequence[str]) -> Choice:
    """One of a few words."""
    return Choice(tuple(names))


@dataclass(frozen=True, slots=True, kw_only=True)
class JobField:
    """One field of a job.

    - `name`: its key in jobs files, requests and Python; `attribute` holds it in this `part` of a JobSpec.
    - `kind`: what its values are; `default`: the value if nothing is said, `otherwise` says it in words.
    - `help`: its meaning, for the command line and the API; `more`: what the docs add.
    - `option`: its name on the command line ("" for none), `metavar` the name of the value there;
      `for_each`: given several times, it makes a job for each value.
    - `remote`: whether it may be given over HTTP.
    - `shared`: whether several jobs may have it in common, as in `[defaults]`.
    - `kinds`: names of the kinds of jobs that it is for; none: for all.
    """

    name: str = ""
    kind: FieldType
    help: str
    more: str = ""
    default: Any = None
    otherwise: str = ""
    option: str = ""
    metavar: str | None = None
    for_each: bool = False
    remote: bool = True
    shared: bool = True
    kinds: tuple[str, ...] = ()
    part: str = EXTRA
    attribute: str = ""

    @property
    def usually(self) -> str:
        """What holds if nothing is said, in words; "" for nothing."""
        if self.otherwise or self.default is None or isinstance(self.default, bool):
            return self.otherwise
        return f"{self.default:g}" if isinstance(self.default, float) else str(self.default)

    def require(self, value: Any) -> None:
        """Raise InputError for a number or a word that does not fit; None fits where it is the default."""
        if isinstance(self.kind, NumberKind | Choice) and not (value is None and self.default is None):
            self.kind.require(self.name, value)


def job_field(kind: FieldType, help: str, *, default: Any = MISSING, **more: Any) -> Any:
    """An attribute of a dataclass that is a field of jobs, under its own name unless another is given."""
    usual = None if default is MISSING or callable(default) else default
    declared = JobField(kind=kind, help=help, default=usual, part="", **more)
    given = {"default_factory": default} if callable(default) else {"default": default}
    return field(**given, metadata={_DECLARED: declared})


@cache
def fields_of(owner: type, part: str = "") -> tuple[JobField, ...]:
    """The fields that a dataclass declares, those of its parts in their places."""
    found: list[JobField] = []
    for each in fields(owner):
        declared = each.metadata.get(_DECLARED)
        if declared is not None:
            name = declared.name or each.name
            found.append(replace(declared, name=name, part=part, attribute=each.name))
        elif isinstance(each.type, type) and is_dataclass(each.type):
            found += fields_of(each.type, each.name)
    return tuple(found)
