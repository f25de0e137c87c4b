"""Kinds of jobs by name and by model; found by entry points."""

from functools import cache
from pathlib import Path

from tuneloom.app.kinds.base import JobKind
from tuneloom.app.kinds.registering import KINDS, TUNERS, registered
from tuneloom.app.kinds.tuner.kind import tuner_kind
from tuneloom.errors import InputError

FALLBACK = "tvm"
ZOO = "zoo"
"""Built-in networks: a scheme of the fallback's own."""


def kind_names() -> list[str]:
    """Every kind there is: those registered as kinds, and tuners that come without one."""
    return sorted({point.name for group in (KINDS, TUNERS) for point in registered(group)})


@cache
def kind_named(name: str) -> JobKind:
    """The kind registered under this name; a tuner without a kind of its own gets a plain one.

    Raises InputError naming the kinds there are.
    """
    for point in registered(KINDS):
        if point.name == name:
            kind: JobKind = point.load()
            return kind
    if any(point.name == name for point in registered(TUNERS)):
        return tuner_kind(name)
    raise InputError(f"no tuner named {name!r}; known: {', '.join(kind_names())}", field="tuner")


def kind_for(model: str) -> JobKind:
    """The kind of a model that nobody named a tuner for: by its scheme, or by its file."""
    scheme, colon, _ = model.partition(":")
    if colon and scheme in kind_names():
        return kind_named(scheme)
    kinds = (kind_named(point.name) for point in registered(KINDS))
    found = next((kind for kind in kinds if kind.takes(model)), None)
    if found is None and colon and scheme.isidentifier() and scheme != ZOO and not Path(model).exists():
        raise InputError(
            f"{model}: no tuner named {scheme!r}; known: {', '.join(kind_names())}", field="model"
        )
    return found or kind_named(FALLBACK)


def has_scheme(model: str) -> bool:
    """Whether a model is the name of something that a kind finds itself, not a path."""
    scheme, colon, _ = model.partition(":")
    return bool(colon) and scheme in (*kind_names(), ZOO)
