"""Values that travel between processes with every trial, packed and unpacked quickly."""

from dataclasses import fields
from operator import attrgetter
from typing import Any, TypeVar

Value = TypeVar("Value")


def quickly_pickled(cls: type[Value]) -> type[Value]:
    """Let a frozen dataclass with slots know its fields once; dataclasses look them up for every object.

    Looking them up takes far longer than reading the values, and a driver of a thousand devices packs
    tens of thousands of objects a second.
    """
    names = tuple(field.name for field in fields(cls))  # type: ignore[arg-type]
    read = attrgetter(*names)
    setters = tuple(getattr(cls, name).__set__ for name in names)

    def getstate(self: Any) -> tuple[Any, ...]:
        return read(self) if len(names) > 1 else (read(self),)

    def setstate(self: Any, state: tuple[Any, ...]) -> None:
        for set_field, value in zip(setters, state, strict=True):
            set_field(self, value)

    cls.__getstate__ = getstate  # type: ignore[method-assign]
    cls.__setstate__ = setstate  # type: ignore[attr-defined]
    return cls
